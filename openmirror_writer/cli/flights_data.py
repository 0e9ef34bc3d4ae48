"""Where the rows of the demo are."""

from importlib.resources import files
from pathlib import Path

_FILE = "flights.csv"


def flights_path() -> Path:
    """Return the path of the CSV file with three days of flights from New York.

    In an installed wheel the file lies beside this module in ``data/``. In a checkout (an editable install) it is
    kept once, in ``samples/nycflights/``, where its README.md says what it holds and where it comes from.

    Returns:
        The path of a UTF-8 file of 2,546 rows with a header; an empty field is NULL.

    Raises:
        FileNotFoundError: The file is in neither place: the installation is damaged.

    >>> flights_path().read_text(encoding="utf-8")[:35]
    'year,month,day,carrier,flight,origi'
    """
    package = Path(str(files(__package__)))
    places = (package / "data", package.parents[1] / "samples" / "nycflights")
    for place in places:
        path = place / _FILE
        if path.is_file():
            return path
    looked = " and ".join(str(place) for place in places)
    raise FileNotFoundError(f"{_FILE} is in neither {looked}: install openmirror-writer again")
