"""`scalor view`: the viewer's page served on this machine, with edits of the tracks."""
