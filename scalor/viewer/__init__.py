"""The viewer: a page that plays a tracked video with its tracks, and the data it reads."""
