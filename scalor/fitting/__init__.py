"""`scalor fit`: from a video to a model of its objects, with settings that the video itself suggests."""
