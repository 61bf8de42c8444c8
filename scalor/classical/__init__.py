"""Trackers that learn nothing: detections by colour or by foreground, linked by a Kalman filter."""
