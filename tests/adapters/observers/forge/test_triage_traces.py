"""Which lines of a commit a stack trace names, and when it names none."""

from __future__ import annotations

import pytest

from ralph_mission.adapters.observers.forge.triage import TracedCommit, traced_lines, traces
from tests.adapters.observers.place import Place
from tests.helpers import commit, git

FILES = {
    "src/shop/cart.py": "def total(prices):\n    prices = list(prices)\n    return sum(prices) / len(prices)\n",
    "tests/shop/cart.py": "def total(prices):\n    prices = list(prices)\n    return sum(prices) / len(prices)\n",
    "packages/web/package.json": '{"name": "@shop/web"}\n',
    "package.json": '{"name": "shop"}\n',
    "packages/web/lib/view.js": "'use strict';\nclass View {\n  render(cart) {\n    return cart.items;\n  }\n}\n",
    "lib/router.js": "function dispatch(req) {\n  const next = req.next;\n  return next(req.url);\n}\n"
    "function other() {\n  return stop();\n}\n",
    "src/main/java/org/shop/Cart.java": "package org.shop;\nclass Cart {\n  int total() {\n    return 1 / 0;\n  }\n}\n",
    "go.mod": "module example.org/acme/shop/v2\n\ngo 1.22\n",
    "cart/cart.go": "package cart\n\nfunc (c *Cart) Total() int {\n\treturn c.items[3]\n}\n",
    "crates/core/main.rs": "fn search(path: &str) {\n    let file = open(path).unwrap();\n}\n",
}

PYTHON = """Traceback (most recent call last):
  File "{}", line {}, in total
    {}
ZeroDivisionError: division by zero"""
GO = (
    "goroutine 1 [running]:\nexample.org/acme/shop/v2/cart.(*Cart).Total(0xc000012)\n"
    "\t/root/go/pkg/mod/example.org/acme/shop/v2@{}/cart/cart.go:4 +0x3b"
)
LINE = "return sum(prices) / len(prices)"


@pytest.fixture
def traced(place: Place) -> TracedCommit:
    commit(
        place.path,
        {"cart/cart.go": "package cart\n\n" + FILES["cart/cart.go"].partition("\n\n")[2].replace("3]", "3+1]")},
    )
    git(place.path, "tag", "v2.0.0")
    commit(place.path, FILES)
    git(place.path, "tag", "v2.1.0")
    return TracedCommit(place.git, commit(place.path, {"cart/cart.go": "// Carts.\n" + FILES["cart/cart.go"]}))


def named(traced: TracedCommit, text: str) -> list[str]:
    return [f"{quote.path}:{quote.line}" for quote in traced_lines(traced, text)]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (PYTHON.format("/venv/lib/python3.11/site-packages/shop/cart.py", 3, LINE), "src/shop/cart.py:3"),
        (PYTHON.format("/venv/lib/python3.11/site-packages/shop/cart.py", 99, LINE), "src/shop/cart.py:3"),  # it moved
        (PYTHON.format("/home/mara/code/project/src/shop/cart.py", 3, LINE), "src/shop/cart.py:3"),
        (PYTHON.format("src/shop/cart.py", 3, LINE), "src/shop/cart.py:3"),
        (PYTHON.format(r"C:\Users\mara\src\shop\cart.py", 3, LINE), "src/shop/cart.py:3"),
        ("> " + PYTHON.format("src/shop/cart.py", 3, LINE).replace("\n", "\n> ")[:-1], "src/shop/cart.py:3"),
        (
            "TypeError: x\n    at View.render (/app/node_modules/@shop/web/lib/view.js:4:17)",
            "packages/web/lib/view.js:4",
        ),
        (
            "    at View.render (/app/node_modules/.pnpm/a@1/node_modules/@shop/web/lib/view.js:4:17)",
            "packages/web/lib/view.js:4",
        ),
        ("    at dispatch (/app/node_modules/shop/lib/router.js:3:10)", "lib/router.js:3"),
        ("    at async dispatch (file:///home/mara/shop/lib/router.js:3:10)", "lib/router.js:3"),
        ("\tat org.shop.Cart.total(Cart.java:4)", "src/main/java/org/shop/Cart.java:4"),
        ("\tat app//org.shop.Cart.total(Cart.java:4)", "src/main/java/org/shop/Cart.java:4"),
        (
            "goroutine 1 [running]:\nexample.org/acme/shop/v2/cart.(*Cart).Total(0xc000012)\n"
            "\t/root/go/pkg/mod/example.org/acme/shop/v2@v2.1.0/cart/cart.go:4 +0x3b",
            "cart/cart.go:5",  # as the tag has it; it moved
        ),
        ("   4: rg::search\n             at ./crates/core/main.rs:2:5", "crates/core/main.rs:2"),
        ("   4: rg::search::{{closure}}\n             at /home/m/rg/crates/core/main.rs:2:5", "crates/core/main.rs:2"),
    ],
)
def test_a_frame_of_ours_names_its_line(traced: TracedCommit, text: str, line: str) -> None:
    assert named(traced, f"It fails:\n\n```\n{text}\n```\n") == [line]


@pytest.mark.parametrize(
    "text",
    [
        PYTHON.format("/venv/lib/python3.11/site-packages/other/cart.py", 3, LINE),
        PYTHON.format("/venv/lib/python3.11/site-packages/src/shop/basket.py", 3, LINE),
        PYTHON.format("src/shop/cart.py", 3, "return mean(prices)"),  # of another version
        PYTHON.format("src/shop/cart.py", 3, "return 1"),  # too short to be told apart
        PYTHON.format("cart.py", 3, LINE),  # a name alone may be anybody's
        PYTHON.format("/home/mara/other/tests/shop/cart.py", 3, LINE),
        "    at View.render (/app/node_modules/other/lib/view.js:4:17)",
        "    at View.render (/app/node_modules/@shop/other/lib/view.js:4:17)",
        "    at other (/app/node_modules/shop/lib/router.js:3:10)",  # no such function above
        "    at dispatch (/app/node_modules/shop/lib/router.js:300:10)",
        "    at dispatch (/app/node_modules/shop/dist/router.js:3:10)",
        "    at /app/node_modules/shop/lib/router.js:3:10",  # nothing says that it is this line
        "\tat org.other.Cart.total(Cart.java:4)",
        "\tat org.shop.Cart.pay(Cart.java:4)",
        "github.com/other/shop/cart.(*Cart).Total(0xc0)\n\t/go/pkg/mod/github.com/other/shop@v1/cart/cart.go:4 +0x3b",
        GO.format("v2.0.0"),  # another line by now
        GO.format("v9.9.9"),
        "    at handle (/app/a.js:3:1)\n    at dispatch (/app/node_modules/shop/lib/router.js:3:10)",  # it passes
        "    at ?? (/app/user/handler.js:3:1)\n    at dispatch (/app/node_modules/shop/lib/router.js:3:10)",
        PYTHON.format("/venv/lib/python3.11/site-packages/shop/cart.py", 3, LINE).replace(
            "ZeroDivisionError",
            '  File "/home/mara/app/user.py", line 3, in total\n    return 1 / 0\nZeroDivisionError',
        ),
        "    at dispatch (/app/node_modules/shop/lib/router.js:6:10)",  # in another function
        "runtime.gopanic(0x1)\n\t/usr/local/go/src/cart/cart.go:4 +0x3b",
        "   4: std::search\n             at /rustc/abc/library/std/src/main.rs:2:5",
        "   4: serde::search\n             at /root/.cargo/registry/src/index-1/serde-1/crates/core/main.rs:2:5",
        "See src/shop/cart.py line 3",
    ],
)
def test_what_is_not_known_to_be_a_line_of_ours_is_nothing(traced: TracedCommit, text: str) -> None:
    assert named(traced, text) == []


def test_the_innermost_line_of_ours_comes_first(traced: TracedCommit) -> None:
    text = (
        "Traceback (most recent call last):\n"
        '  File "/x/site-packages/shop/cart.py", line 2, in total\n    prices = list(prices)\n'
        '  File "/x/site-packages/shop/cart.py", line 3, in total\n    return sum(prices) / len(prices)\n'
        '  File "/usr/lib/python3.11/numbers.py", line 3, in mean\n    raise ZeroDivisionError\n'
    )
    assert named(traced, text) == ["src/shop/cart.py:3", "src/shop/cart.py:2"]


@pytest.mark.attack(57)
@pytest.mark.parametrize("piece", ["at (", "\n   at a.b.c.", "\n1: x", '\nFile "', "a/", "a.b/c.(*d).e(", "\n> > > "])
def test_a_long_report_is_read_in_no_time(piece: str) -> None:
    assert traces(f"at .go:1 .rs:1\n{piece * (60_000 // len(piece))}") == []
