"""Which model this browser session tests with, and the key typed for it.

Choice and keys live in the session only. A key is filed under the address it was typed for and is handed out for that very
address, so an address that is changed never gets the key of the one before.
"""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import streamlit as st

from lim_core.backends import ModelSpec
from lim_core.backends.address import read_address
from lim_core.config import Settings, UrlSource, is_loopback, origin_of
from lim_core.drawing.words import count, duration
from lim_core.errors import ConfigError, InputError
from lim_core.runs import EMBEDDED, RunSettings
from lim_core.types import Json
from lim_core.ui import views

if TYPE_CHECKING:
    from lim_core.backends.probe import Probe

SMALL = (
    "The embedded model is Gemma 3 with 270 million parameters: small, local, free. It shows how a prompt behaves, "
    "but its verdict holds for itself. To test the model of the complaint, name its endpoint here."
)
_CHOICE, _ENDPOINT, _KEYS, _FINAL = "model-choice", "model-endpoint", "model-keys", "model-final"
_FOUND = "model-found"
_TURN, _SAID, _HELD = "model-turn", "model-said", "model-held"


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """The model a diagnosis is run on: the embedded one, or a model at an endpoint."""

    model: str = EMBEDDED
    base_url: str | None = None

    @property
    def embedded(self) -> bool:
        """Whether it is the model inside lim."""
        return self.base_url is None and self.model == EMBEDDED

    @property
    def spec(self) -> ModelSpec:
        """How a backend is asked for it."""
        return ModelSpec() if self.embedded else ModelSpec("openai-compat", self.model, self.base_url)

    def settings(self) -> RunSettings:
        """Settings of a run on it, with the window and the tokenizer that this session's connection test found."""
        return RunSettings(model=self.model, base_url=self.base_url, options=_found_options(self))

    @property
    def words(self) -> str:
        """Its name for people; untrusted where it names an endpoint."""
        return "Embedded (Gemma 3 270M, small)" if self.embedded else f"{self.model} at {self.base_url}"


def chosen_model() -> ModelChoice:
    """The choice of this session, else the model the environment names, else the embedded one."""
    choice = st.session_state.get(_CHOICE)
    return choice if isinstance(choice, ModelChoice) else endpoint_model() or ModelChoice()


def endpoint_model() -> ModelChoice | None:
    """The endpoint set on the page Models in this session, else the one the environment names."""
    endpoint = st.session_state.get(_ENDPOINT)
    if isinstance(endpoint, ModelChoice):
        return endpoint
    settings = Settings.from_environment()
    if settings.base_url is None or settings.model is None:
        return None
    return ModelChoice(settings.model, settings.base_url)


def choose(choice: ModelChoice) -> None:
    """Make it the model of this session."""
    st.session_state[_CHOICE] = choice
    if not choice.embedded:
        st.session_state[_ENDPOINT] = choice


def key_for(base_url: str | None) -> str | None:
    """The key typed in this session for this very address; for the environment's own address also the key it names."""
    if base_url is None:
        return None
    typed = _keys().get(read_address(base_url).url)
    settings = Settings.from_environment()
    source = UrlSource.ENVIRONMENT if base_url == settings.base_url else UrlSource.PAGE
    return settings.key_for(base_url, source, typed=typed)


def hold_key(base_url: str, typed: str) -> None:
    """Keep a key that was typed for this address, in this session only.

    Raises:
        InputError: nothing was typed.
        ConfigError: the address is none, or may not be called from this server.
    """
    if not typed:
        raise InputError("The box for the key is empty: type the key of this address, then try again.")
    check_allowed(base_url)
    _keys()[read_address(base_url).url] = typed
    _held().add(base_url)


def pick_model(key: str) -> ModelChoice:
    """A choice between the embedded model and the endpoint of this session, for a page that runs something."""
    endpoint = endpoint_model()
    options = [ModelChoice()] if endpoint is None else [ModelChoice(), endpoint]
    current = chosen_model()
    picked = st.selectbox(
        "Test on",
        options,
        index=options.index(current) if current in options else 0,
        format_func=lambda choice: choice.words,
        key=key,
        disabled=len(options) == 1,
        help=None if endpoint else "Set an endpoint on the page Models to test another model.",
    )
    picked = picked if picked in options else ModelChoice()
    choose(picked)
    return picked


def model_form() -> None:
    """Choose the model of this session, test its connection, and show what the test found."""
    views.note(SMALL)
    endpoint = endpoint_model()
    way = st.segmented_control(
        "Model",
        ["Embedded", "Endpoint"],
        default="Embedded" if chosen_model().embedded else "Endpoint",
        required=True,
        key="model-way",
        persist_state="session",
    )
    if way == "Embedded":
        _embedded_form()
    else:
        _endpoint_form(endpoint)


def check_allowed(base_url: str) -> None:
    """Refuse an address that this server may not call.

    A server that others can reach would otherwise let them send requests into its own network.

    Raises:
        ConfigError: the server is bound beyond loopback and the address is not listed.
    """
    host = st.get_option("server.address") or "0.0.0.0"  # noqa: S104 - Streamlit's own default, compared only
    if is_loopback(f"http://[{host}]" if ":" in host else f"http://{host}"):
        return
    listed = Settings.from_environment().base_url
    if listed is None or read_address(base_url).url != read_address(listed).url:
        raise ConfigError(
            "This server is open to others, so it calls only the address in LIM_BASE_URL: ask its owner to set this one."
        )


def _embedded_form() -> None:
    st.text("Gemma 3 270M runs inside this process: no key, no network.", width="stretch")
    with st.container(horizontal=True):
        if st.button("Use the embedded model", type="primary", disabled=chosen_model().embedded):
            choose(ModelChoice())
            st.rerun()
        tested = st.button("Test connection", key="test-embedded")
    if chosen_model().embedded:
        views.note("This session tests on the embedded model.")
    if tested:
        _show(_ask(ModelChoice(), None))


def _endpoint_form(endpoint: ModelChoice | None) -> None:
    turn = int(st.session_state.get(_TURN, 0))
    # A form sends address and key together, and each turn has a fresh, empty key box: no key meets another address.
    with st.form("endpoint", border=False):
        left, right = st.columns(2)
        url = left.text_input(
            "Base URL",
            value=endpoint.base_url or "" if endpoint else "",
            key="model-url",
            placeholder="http://localhost:11434/v1",
            persist_state="session",
        ).strip()
        held = bool(url) and url in _held()
        name = left.text_input(
            "Model name",
            value=endpoint.model if endpoint else "",
            key="model-name",
            placeholder="as the endpoint calls it",
            persist_state="session",
        ).strip()
        typed = right.text_input(
            "Key for this address",
            type="password",
            key=f"model-key-{turn}",
            autocomplete="off",
            placeholder="held for this address" if held else "none",
        ).strip()
        right.caption("Kept in this browser session only: never stored, and sent to this address alone.")
        with st.container(horizontal=True):
            used = st.form_submit_button("Use this endpoint", type="primary", key="use-endpoint")
            tested = st.form_submit_button("Test connection", key="test-endpoint")
    if used or tested:
        _take(url, name, typed, use=used)
        st.session_state[_TURN] = turn + 1
        st.rerun()
    if not chosen_model().embedded:
        views.note(f"This session tests on {chosen_model().words}.")
    said = st.session_state.pop(_SAID, None)
    if said is not None:
        _show(said)


def _take(url: str, name: str, typed: str, *, use: bool) -> None:
    """Make the endpoint the session's choice, or ask it what it is; what it said is shown in the next run of the page.

    Raises:
        InputError: address or name are missing.
        ConfigError: the address is none, or may not be called from this server.
    """
    if not url or not name:
        raise InputError("Give the base URL and the model's name, then try again.")
    check_allowed(url)
    address = read_address(url)
    if typed:
        hold_key(url, typed)
    if not use:
        st.session_state[_SAID] = _ask(ModelChoice(name, url), key_for(url))
        return
    final = st.session_state.get(_FINAL, {}).get(url, url)
    key = _keys().get(address.url)
    if key:
        _keys()[read_address(final).url] = key
    choose(ModelChoice(name, final))


def _ask(choice: ModelChoice, key: str | None) -> Probe:
    """Test the connection; an address that answered in place of the one typed is remembered."""
    from lim_core.backends.probe import test_connection

    with st.spinner("Asking the endpoint: its models, then one short call"):
        probe = test_connection(choice.spec, key)
    final = probe.spec.base_url
    # Only within the origin that the key was typed for.
    if probe.error is None and final and choice.base_url and origin_of(final) == origin_of(choice.base_url):
        st.session_state.setdefault(_FINAL, {})[choice.base_url] = final
        for url in (choice.base_url, final):
            _found()[_place(url, choice.model)] = probe.spec.options
    return probe


def _found_options(choice: ModelChoice) -> Mapping[str, Json]:
    """What the connection test of this session found out about this very endpoint and model; empty before one."""
    return {} if choice.base_url is None else _found().get(_place(choice.base_url, choice.model), {})


def _place(base_url: str, model: str) -> str:
    return f"{read_address(base_url).url} {model}"


def _found() -> MutableMapping[str, Mapping[str, Json]]:
    found = st.session_state.setdefault(_FOUND, {})
    return found if isinstance(found, dict) else {}


def _show(probe: Probe) -> None:
    if probe.error:
        views.problem(probe.error)
    else:
        st.success("The endpoint answered.", icon=":material/check_circle:")
        if probe.final_url.startswith("http://") and not is_loopback(probe.final_url):
            views.caution("This address is not encrypted: a key sent there can be read on the way.")
    for warning in probe.warnings:
        views.caution(warning)
    said = {True: "yes", False: "no", None: "unknown"}
    window = f"{count(probe.context_window)} tokens" if probe.context_window else "unknown: give it with the case"
    views.table(
        [
            {"what": "final address", "value": probe.final_url or "–"},
            {"what": "models listed", "value": count(len(probe.models)) if probe.models else "none listed"},
            {"what": "one call", "value": duration(probe.seconds)},
            {"what": "usage reported", "value": said[probe.usage_reported]},
            {"what": "cached tokens reported", "value": said[probe.cached_tokens_reported]},
            {"what": "context window", "value": window},
        ],
        alt="What the connection test found",
    )
    if probe.reply:
        views.note("It said:")
        views.block(probe.reply)
    if probe.models:
        with st.expander("Models listed"):
            views.block("\n".join(probe.models), height=200)


def _keys() -> MutableMapping[str, str]:
    keys = st.session_state.setdefault(_KEYS, {})
    return keys if isinstance(keys, dict) else {}


def _held() -> set[str]:
    """The addresses, as typed, that a key is held for."""
    held = st.session_state.setdefault(_HELD, set())
    return held if isinstance(held, set) else set()
