"""Classical trackers without learning.

Objects are detected by colour, foreground or motion, and linked by data association with a Kalman filter.
"""
