"""Still cameras: the background, its lighting, the foreground, and a survey of what moves."""
