"""Clips for training and evaluation, most with ground truth: synthetic scenes, composed clips, cuts of videos."""
