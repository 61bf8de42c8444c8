"""Tracking: from the frames of a video to its tracks."""
