"""Which model this browser session tests with, and the key typed for it.

Choice and keys live in the session only. A key is filed under the address it was typed for and is handed out for that very
address, so an address that is changed never gets the key of the one before.
"""

from __future__ import annotations

from collections.abc import MutableMapping
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import TYPE_CHECKING

import streamlit as st

from lim_core.backends import ModelSpec
from lim_core.backends.address import read_address
from lim_core.config import Settings, UrlSource, is_loopback
from lim_core.errors import ConfigError, LimError
from lim_core.runs import EMBEDDED
from lim_core.ui import views
from lim_core.ui.words import count, duration

if TYPE_CHECKING:
    from lim_core.backends.probe import Probe

SMALL = (
    "The embedded model is Gemma 3 with 270 million parameters: small, local, free. It shows how a prompt behaves, "
    "but its verdict holds for itself. To test the model of the complaint, name its endpoint here."
)
_CHOICE, _ENDPOINT, _KEYS = "model-choice", "model-endpoint", "model-keys"


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

    @property
    def words(self) -> str:
        """Its name for people; untrusted where it names an endpoint."""
        return "Embedded (Gemma 3 270M, small)" if self.embedded else f"{self.model} at {self.base_url}"


def chosen_model() -> ModelChoice:
    """The choice of this session; the embedded model unless another was set."""
    choice = st.session_state.get(_CHOICE)
    return choice if isinstance(choice, ModelChoice) else ModelChoice()


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
        _test(ModelChoice(), None)


def _endpoint_form(endpoint: ModelChoice | None) -> None:
    left, right = st.columns(2)
    with left:
        url = st.text_input(
            "Base URL",
            value=endpoint.base_url or "" if endpoint else "",
            key="model-url",
            placeholder="http://localhost:11434/v1",
            persist_state="session",
        ).strip()
        name = st.text_input(
            "Model name",
            value=endpoint.model if endpoint else "",
            key="model-name",
            placeholder="as the endpoint calls it",
            persist_state="session",
        ).strip()
    with right:
        # The box belongs to the address: another address has another, empty, box.
        typed = st.text_input(
            "Key for this address",
            type="password",
            key=f"model-key-{sha256(url.encode()).hexdigest()[:16]}",
            autocomplete="off",
            help="Kept in this browser session only: never stored, and sent to this address alone. Empty where none is needed.",
        )
    with st.container(horizontal=True):
        used = st.button("Use this endpoint", type="primary", disabled=not (url and name))
        tested = st.button("Test connection", key="test-endpoint", disabled=not url)
    if not (used or tested):
        if not chosen_model().embedded:
            views.note(f"This session tests on {chosen_model().words}.")
        return
    check_allowed(url)
    address = read_address(url)
    if typed:
        _keys()[address.url] = typed
    if address.exposed and typed:
        views.caution("The key crosses the network unencrypted: use an https:// address.")
    choice = ModelChoice(name, url)
    if used:
        choose(choice)
        views.note(f"This session now tests on {choice.words}.")
    else:
        _test(choice, key_for(url))


def _test(choice: ModelChoice, key: str | None) -> None:
    from lim_core.backends.probe import test_connection

    with st.spinner("Asking the endpoint: its models, then one short call"):
        try:
            probe = test_connection(replace(choice.spec), key)
        except LimError as error:
            views.problem(str(error))
            return
    _show(probe)


def _show(probe: Probe) -> None:
    if probe.error:
        views.problem(probe.error)
    else:
        st.success("The endpoint answered.", icon=":material/check_circle:")
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
