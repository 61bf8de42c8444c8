"""What tracking a video leaves behind: tables, masks, videos, pictures and a page about them."""

from scalor.outputs.converting import to_supervision
from scalor.outputs.folder import FILES, ResultFolder, Summary

__all__ = ["FILES", "ResultFolder", "Summary", "to_supervision"]
