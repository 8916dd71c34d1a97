"""Settings, and which key goes to which address."""

from __future__ import annotations

from pathlib import Path

import pytest

from lim_core.config import Settings, UrlSource, is_loopback, origin_of
from lim_core.errors import ConfigError

OPENAI = "https://api.openai.com/v1"
OWN = "https://models.example.net/v1"


def settings(**environ: str) -> Settings:
    return Settings.from_environment(environ)


def test_every_variable_is_read_and_an_empty_one_is_absent() -> None:
    full = settings(
        LIM_STORE="/data/a.duckdb",
        LIM_GGUF="/data/m.gguf",
        LIM_BASE_URL=OWN,
        LIM_API_KEY=" key-a\n",
        LIM_MODEL="small",
        OPENAI_API_KEY="key-b",
    )
    assert (full.store_path, full.gguf, full.base_url) == (Path("/data/a.duckdb"), Path("/data/m.gguf"), OWN)
    assert (full.model, full.api_key, full.openai_api_key) == ("small", "key-a", "key-b")
    empty = settings(LIM_STORE="", LIM_GGUF=" ", LIM_BASE_URL="", LIM_API_KEY="", LIM_MODEL="", OPENAI_API_KEY="")
    assert empty == settings()
    assert (empty.gguf, empty.base_url, empty.model, empty.secrets) == (None, None, None, ())


def test_the_default_store_is_in_the_users_data_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    path = settings().store_path
    assert path.name == "lim.duckdb"
    assert tmp_path in path.parents
    assert settings(LIM_STORE="~/x.duckdb").store_path == tmp_path / "x.duckdb"


def test_no_key_in_repr() -> None:
    both = settings(LIM_API_KEY="planted-one", OPENAI_API_KEY="planted-two", LIM_BASE_URL=OWN)
    assert "planted" not in repr(both)
    assert "planted" not in str(both)
    assert set(both.secrets) == {"planted-one", "planted-two"}


@pytest.mark.parametrize(
    ("url", "source", "expected"),
    [
        (OPENAI, UrlSource.ENVIRONMENT, "openai"),
        ("HTTPS://API.OpenAI.com:443/v1", UrlSource.ENVIRONMENT, "openai"),
        ("http://api.openai.com/v1", UrlSource.ENVIRONMENT, None),
        ("https://api.openai.com:8443/v1", UrlSource.ENVIRONMENT, None),
        ("https://api.openai.com.example.net/v1", UrlSource.COMMAND_LINE, None),
        ("https://api.openai.com@example.net/v1", UrlSource.COMMAND_LINE, None),
        (OWN, UrlSource.ENVIRONMENT, "lim"),
        ("https://models.example.net/other", UrlSource.COMMAND_LINE, "lim"),
        ("https://models.example.net:8443/v1", UrlSource.COMMAND_LINE, None),
        ("http://models.example.net/v1", UrlSource.COMMAND_LINE, None),
        ("https://elsewhere.example.net/v1", UrlSource.COMMAND_LINE, None),
        ("http://localhost:8000/v1", UrlSource.COMMAND_LINE, "openai"),
        ("http://[::1]:8000/v1", UrlSource.COMMAND_LINE, "openai"),
        ("http://127.9.0.1/v1", UrlSource.COMMAND_LINE, "openai"),
        ("http://localhost:8000/v1", UrlSource.ENVIRONMENT, None),
        (OPENAI, UrlSource.PAGE, None),
        (OWN, UrlSource.PAGE, None),
        ("http://localhost:8000/v1", UrlSource.PAGE, None),
    ],
)
def test_a_key_goes_only_to_its_origin(url: str, source: UrlSource, expected: str | None) -> None:
    both = settings(LIM_BASE_URL=OWN, LIM_API_KEY="lim", OPENAI_API_KEY="openai")
    assert both.key_for(url, source) == expected


def test_lim_key_without_a_base_url_goes_to_the_address_of_the_command_line_only() -> None:
    alone = settings(LIM_API_KEY="lim", OPENAI_API_KEY="openai")
    assert alone.key_for(OWN, UrlSource.COMMAND_LINE) == "lim"
    assert alone.key_for(OWN, UrlSource.ENVIRONMENT) is None
    assert alone.key_for(OPENAI, UrlSource.COMMAND_LINE) == "openai"
    assert alone.key_for(None, UrlSource.COMMAND_LINE) is None


def test_a_typed_key_is_the_only_one_a_page_uses() -> None:
    both = settings(LIM_BASE_URL=OWN, LIM_API_KEY="lim", OPENAI_API_KEY="openai")
    assert both.key_for(OWN, UrlSource.PAGE, typed="typed") == "typed"
    assert both.key_for(OPENAI, UrlSource.PAGE, typed="") is None


def test_a_named_key_goes_where_it_was_named_for() -> None:
    own = settings(LIM_BASE_URL=OWN, LIM_API_KEY="lim")
    environ = {"TEAM_KEY": "team"}
    assert own.key_for("https://b.example.net/v1", UrlSource.COMMAND_LINE, name="TEAM_KEY", environ=environ) == "team"
    with pytest.raises(ConfigError, match="TEAM_KEY"):
        own.key_for(OWN, UrlSource.COMMAND_LINE, name="TEAM_KEY", environ={})


@pytest.mark.parametrize(
    "url",
    ["", "models", "ftp://a/b", "https://", "http://a b/", "https://evil.example\\@api.openai.com/v1", "http://a:x/"],
)
def test_what_is_no_address_is_refused_without_repeating_it(url: str) -> None:
    with pytest.raises(ConfigError):
        origin_of(url)
    with pytest.raises(ConfigError) as refused:
        origin_of("ftp://user:planted@host/")
    assert "planted" not in str(refused.value)


def test_a_bad_base_url_or_key_in_the_environment_is_one_sentence() -> None:
    with pytest.raises(ConfigError, match="LIM_BASE_URL"):
        settings(LIM_BASE_URL="localhost:8000")
    with pytest.raises(ConfigError, match="LIM_API_KEY") as refused:
        settings(LIM_API_KEY="plan\nted")
    assert "plan" not in str(refused.value)


def test_origins_are_spelled_one_way() -> None:
    assert origin_of("HTTP://Host/") == origin_of("http://host:80/x") == "http://host:80"
    assert origin_of("https://[::1]/v1") == "https://[::1]:443"
    assert origin_of("https://bücher.example/") == "https://xn--bcher-kva.example:443"


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://localhost/", True),
        ("http://127.0.0.1:1/", True),
        ("http://[::1]/", True),
        ("http://localhost.example.net/", False),
        ("http://10.0.0.1/", False),
        ("http://127.0.0.1.example.net/", False),
        ("http://0.0.0.0/", False),
    ],
)
def test_loopback(url: str, expected: bool) -> None:
    assert is_loopback(url) is expected
