"""Appends the Parquet files of a folder that are new or were modified: load_dlt.py FOLDER URL."""

import pathlib
import sys

import dlt
from dlt.sources.filesystem import filesystem, read_parquet

folder, url = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2].replace("postgres:", "postgresql:", 1)
files = filesystem(bucket_url=folder.as_uri(), file_glob="*.parquet")
files.apply_hints(incremental=dlt.sources.incremental("modification_date"))
pipeline = dlt.pipeline("nights", destination=dlt.destinations.postgres(url), dataset_name="dlt")
pipeline.run((files | read_parquet()).with_name("trips"))
