"""Result files of a tracked video: tables, masks, videos, pictures and a report."""

from scalor.outputs.result_folder import FILES, ResultFolder, Summary

__all__ = ["FILES", "ResultFolder", "Summary"]
