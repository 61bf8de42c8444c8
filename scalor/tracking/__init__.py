"""From the frames of a video to its tracks."""
