"""Opens every page: its set-up, its navigation, its link, the shared resources, and what happens to errors."""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlencode, urlsplit, urlunsplit

import streamlit as st

from lim_core.config import Settings, UrlSource, is_loopback
from lim_core.errors import ConfigError, InputError, LimError
from lim_core.jobs import Jobs, where
from lim_core.store import Store
from lim_core.store.inbox import inbox_path
from lim_core.store.records import RunStatus
from lim_core.ui import views

_log = logging.getLogger("lim")
_ICON = Path(__file__).with_name("icon.svg")
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,79}")


# One session at a time takes runs in; the others find them in the store.
_taking = threading.Lock()


@dataclass(frozen=True, slots=True)
class Room:
    """One page in the navigation."""

    path: str
    title: str
    icon: str

    @property
    def name(self) -> str:
        """Its name in addresses, as Streamlit makes it of the file's name."""
        return Path(self.path).stem.split("_", 1)[-1]


DIAGNOSE = Room("pages/1_Diagnose.py", "Diagnose", ":material/troubleshoot:")
CURVES = Room("pages/2_Position_curves.py", "Position curves", ":material/show_chart:")
TOKENS = Room("pages/3_Accuracy_vs_tokens.py", "Accuracy vs tokens", ":material/compress:")
ORDERINGS = Room("pages/4_Orderings.py", "Orderings", ":material/swap_vert:")
RUNS = Room("pages/6_Runs.py", "Runs", ":material/list_alt:")
MODELS = Room("pages/7_Models.py", "Models", ":material/memory:")
ROOMS = (Room("app.py", "Home", ":material/home:"), DIAGNOSE, CURVES, TOKENS, ORDERINGS, RUNS, MODELS)
# The page on which a run of a kind opens.
ROOM_OF = {
    "diagnosis": DIAGNOSE,
    "positions": CURVES,
    "grid": CURVES,
    "tokens": TOKENS,
    "orderings": ORDERINGS,
}


@dataclass(frozen=True, slots=True)
class RunLink:
    """What a link names: a run, a case in it, a slot of that case (0-based)."""

    run: str | None = None
    case: str | None = None
    position: int | None = None

    def to_query(self) -> dict[str, str]:
        """The query parameters of the link; what is not set is left out."""
        values = {"run": self.run, "case": self.case, "position": self.position}
        return {name: str(value) for name, value in values.items() if value is not None}

    @classmethod
    def from_query(cls, query: Mapping[str, str]) -> RunLink:
        """Read a link; parameters that lim does not know are ignored.

        Raises:
            InputError: an id or a slot that no link of lim's can hold.
        """
        run, case, position = query.get("run"), query.get("case"), query.get("position")
        if run is not None and not _ID.fullmatch(run):
            raise InputError("This link does not hold a valid run id: copy it again, or find the run on the page Runs.")
        if case is not None and not 0 < len(case) <= 200:
            raise InputError(
                "This link does not hold a valid case id: copy it again, or find the run on the page Runs."
            )
        if position is not None and not re.fullmatch(r"\d{1,5}", position, re.ASCII):
            raise InputError(
                "This link does not hold a valid position: copy it again, or find the run on the page Runs."
            )
        return cls(run, case, None if position is None else int(position))


@dataclass(frozen=True, slots=True)
class Shared:
    """A link to hand on, and whether it opens on this machine only."""

    url: str
    loopback: bool


def open_page(title: str, heading: str | None = None) -> None:
    """Set the page up and draw what all pages share. The first statement of every page."""
    st.set_page_config(page_title=f"{title} · lim", page_icon=str(_ICON), layout="wide", initial_sidebar_state=220)
    with st.sidebar:
        st.markdown("**lim**  \n:small[:gray[where the answer was lost]]")
        for room in ROOMS:
            st.page_link(room.path, label=room.title, icon=room.icon)
    st.title(heading or title, anchor=False)
    take_in()


@st.cache_resource(show_spinner=False, max_entries=1)
def store() -> Store:
    """The store of this process, opened at its first use; runs that an earlier process left going are marked.

    Raises:
        StoreError: it cannot be opened; the next use tries again.
    """
    opened = Store.open(Settings.from_environment().store_path)
    _await_keys(opened, opened.mark_interrupted())
    return opened


def take_in() -> None:
    """Take runs into the store that the command line wrote beside it; where there are none, this only lists a folder."""
    if not _taking.acquire(blocking=False):
        return
    try:
        folder = inbox_path(Settings.from_environment().store_path, "any").parent
        if any(folder.glob("*.duckdb")):
            _await_keys(store(), store().take_in())
    except LimError as error:
        # What keeps the store from opening is said by the page itself, as soon as it wants the store.
        _log.warning("The inbox was left alone: %s", where(error))
    finally:
        _taking.release()


def _await_keys(opened: Store, run_ids: Iterable[str]) -> None:
    """Runs that were cut off and went with a key wait for it: keys are never stored, so a new process has none but its own."""
    environment = Settings.from_environment()
    for run_id in run_ids:
        run = opened.run(run_id)
        if run is None or run.status is not RunStatus.INTERRUPTED or not run.settings.get("keyed"):
            continue
        url = run.settings.get("base_url")
        source = UrlSource.ENVIRONMENT if url == environment.base_url else UrlSource.PAGE
        key = None
        # A file from the inbox can hold any address; for one that is none there is no key.
        with suppress(ConfigError):
            key = environment.key_for(url if isinstance(url, str) else None, source)
        if key is None:
            opened.set_status(
                run_id, RunStatus.WAITING, "The program ended while this run was going, and its key went."
            )


@st.cache_resource(show_spinner=False, max_entries=1)
def jobs() -> Jobs:
    """The background runs of this process, shared by all sessions."""
    return Jobs()


@contextmanager
def guarded() -> Iterator[None]:
    """Show errors in one sentence: lim's own as they are, all others in general words, logged without any prompt text."""
    try:
        yield
    except LimError as error:
        views.problem(str(error))
    except Exception as error:  # noqa: BLE001 - the shell is where a page's faults end
        # `where` leaves the message out: it may quote a prompt.
        _log.error("A page failed: %s", where(error))
        views.problem("Something went wrong inside lim; the server's log says where. Reload the page to go on.")


def share(link: RunLink, address: str | None, room: Room = DIAGNOSE, query: str = "") -> Shared:
    """The link under the address that the browser used; `query` holds further parameters, already encoded."""
    parts = urlsplit(address or "http://localhost:8501/")
    # The path before the page's name is the base path of a server behind a proxy.
    base = parts.path.rstrip("/")
    for other in ROOMS[1:]:
        base = base.removesuffix(f"/{other.name}")
    whole = "&".join(part for part in (urlencode(link.to_query()), query) if part)
    url = urlunsplit((parts.scheme, parts.netloc, f"{base}/{room.name}", whole, ""))
    return Shared(url, is_loopback(url))


def go_to(room: Room, link: RunLink) -> None:
    """Switch to another page with the link in its address. Does not return."""
    st.switch_page(room.path, query_params=link.to_query())
