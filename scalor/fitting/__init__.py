"""`scalor fit`: train or refine a model on one's own videos, with settings chosen from the videos."""
