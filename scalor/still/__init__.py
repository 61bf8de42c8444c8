"""A camera that stands still: the scene without objects, what stands out from it, and what that tells of a video."""
