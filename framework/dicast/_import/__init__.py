"""The command ``dicast import``: a report of recorded files, and a pipeline that judges them."""
