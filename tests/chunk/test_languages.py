"""Every language is cut at its own declarations."""

import re
from itertools import pairwise

import pytest

from garage.chunk.languages import LANGUAGES
from garage.chunk.splitters import Splitter

# Declarations as they follow one another in a file: each must come out whole, although two of them would not fit and
# every line would do for a cut. The generic table gets this wrong, so a table that does nothing fails.
DECLARATIONS = {
    "c": (
        "static int count(int n)\n{\n  return n + 1;\n}",
        "void show(char *text)\n{\n  puts(text);\n}",
        "struct pair {\n  int first;\n  int second;\n};",
    ),
    "cobol": (
        "       DATA DIVISION.\n       01 A PIC 9.\n       01 B PIC 9.",
        "       PROCEDURE DIVISION.\n           MOVE 1 TO A.\n           STOP RUN.",
    ),
    "cpp": (
        "    class Node {\n      int value;\n      Node *next;\n    };",
        "    struct Edge {\n      Node *from;\n      Node *to;\n    };",
        "    template<T>\n    T twice(T x) {\n      return x + x;\n    }",
    ),
    "csharp": (
        "    [Test]\n    public void Adds()\n    {\n        Run(1);\n    }",
        "    private int Sum(int a)\n    {\n        return a;\n    }",
        "    internal bool Is(int a)\n    {\n        return a;\n    }",
    ),
    "css": (
        "@media print {\n  a { color: red }\n  b { color: red }\n}",
        "@layer base {\n  p { margin: 0 }\n  q { margin: 0 }\n}",
    ),
    "elixir": (
        "  @doc false\n  def add(a, b) do\n    a + b\n  end",
        "  defp take(list) do\n    hd(list)\n    |> run()\n  end",
        '  test "adds" do\n    assert 1\n    assert 2\n  end',
    ),
    "go": (
        "func add(a, b int) int {\n\tc := a + b\n\treturn c\n}",
        "type pair struct {\n\tfirst int\n\tsecond int\n}",
        "func sub(a, b int) int {\n\tc := a - b\n\treturn c\n}",
    ),
    "haskell": (
        "add :: Int -> Int\nadd 0 = 1\nadd n = n + 1",
        "data Tree\n  = Leaf\n  | Node Tree Tree",
        "sub :: Int -> Int\nsub 0 = 1\nsub n = n - 1",
    ),
    "html": (
        "<section>\n<p>one</p>\n<p>two</p>\n</section>",
        "<footer>\n<p>three</p>\n<p>four</p>\n</footer>",
    ),
    "java": (
        "    @Override\n    public int size() {\n        return n;\n    }",
        "    private void clear() {\n        n = 0;\n        m = 0;\n    }",
        "    static int twice(int a) {\n        return a + a;\n    }",
    ),
    "javascript": (
        "function add(a, b) {\n  const c = a + b\n  return c\n}",
        "export class Pair {\n  first = 1\n  second = 2\n}",
        "const sub = (a, b) => {\n  log(a)\n  return a - b\n}",
    ),
    "kotlin": (
        "fun add(a: Int): Int {\n    log(a)\n    return a\n}",
        "data class Pair(\n    val first: Int,\n    val b: Int)",
        "@Test\nfun adds() {\n    check(1)\n    check(2)\n}",
    ),
    "latex": (
        "\\section{First}\nSome text here.\nAnd more of it.",
        "\\section{Other}\nOther text here.\nAnd more of it.",
    ),
    "lua": (
        "local function add(a, b)\n  local c = a + b\n  return c\nend",
        "function sub(a, b)\n  print(a, b)\n  return a - b\nend",
    ),
    "php": (
        "    #[Test]\n    public function add($a) {\n        return $a;\n    }",
        "    private function sub($a) {\n        log($a);\n        return $a;\n    }",
    ),
    "powershell": (
        "function Get-One {\n  $a = 1\n  return $a\n}",
        "Function Get-Two {\n  $b = 2\n  return $b\n}",
    ),
    "proto": (
        "message Pair {\n  int32 first = 1;\n  int32 b = 2;\n}",
        "service Adder {\n  rpc Add(A) returns (B);\n}",
        "enum Colour {\n  RED = 0;\n  GREEN = 1;\n  BLUE = 2;\n}",
    ),
    "python": (
        "@cache\ndef add(a, b):\n    c = a + b\n    return c",
        "class Pair:\n    first = 1\n    second = 2",
        "async def sub(a, b):\n    c = a - b\n    return c",
    ),
    "r": (
        "add <- function(a, b) {\n  print(a)\n  a + b\n}",
        "sub = function(a, b) {\n  print(a)\n  a - b\n}",
    ),
    "ruby": (
        "  def add(a, b)\n    c = a + b\n    c\n  end",
        "  def sub(a, b)\n    c = a - b\n    c\n  end",
    ),
    "rust": (
        "#[test]\nfn adds() {\n    check(1);\n    check(2);\n}",
        "pub struct Pair {\n    first: i32,\n    second: i32,\n}",
        "impl Pair {\n    fn one() {}\n    fn two() {}\n}",
    ),
    "scala": (
        "case class Pair(\n  first: Int,\n  second: Int)",
        "def add(a: Int) = {\n  log(a)\n  a + 1\n}",
        "object Main {\n  val one = 1\n  val two = 2\n}",
    ),
    "shell": (
        "start() {\n  echo one\n  echo two\n}",
        "function stop {\n  echo three\n  echo four\n}",
    ),
    "solidity": (
        "    function add(uint a) {\n        log(a);\n        sum += a;\n    }",
        "    modifier owned() {\n        require(ok);\n        require(up);\n    }",
    ),
    "sql": (
        "CREATE TABLE pair (\n  first int,\n  second int\n);",
        "select first,\n  second\nfrom pair\nwhere first > 1;",
    ),
    "swift": (
        "    func add(a: Int) {\n        log(a)\n        sum += a\n    }",
        "    init(first: Int) {\n        a = first\n        b = first\n    }",
    ),
    "typescript": (
        "interface Pair {\n  first: number\n  second: number\n}",
        "@Injectable()\nexport class Adder {\n  one = 1\n}",
        "type Sum = {\n  left: number\n  right: number\n}",
    ),
}


def cut(language: str, content: str, size: int) -> list[str]:
    splitter = Splitter(LANGUAGES[language], size, 0)
    return [content[start:end] for start, end in splitter.split(content, 0, len(content))]


def test_every_language_is_tried_here() -> None:
    assert set(DECLARATIONS) | {"text"} == set(LANGUAGES)


@pytest.mark.parametrize("language", DECLARATIONS)
def test_declarations_come_out_whole(language: str) -> None:
    declarations = DECLARATIONS[language]
    content = "\n".join(declarations) + "\n"
    size = min(len(one) + len(other) for one, other in pairwise(declarations))
    whole = [declaration.strip() for declaration in declarations]
    assert cut(language, content, size) == whole
    assert cut("text", content, size) != whole


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_table_goes_from_lines_down_to_characters(language: str) -> None:
    *separators, last = LANGUAGES[language]
    assert last == ""
    assert r"\n" in separators
    for separator in separators:
        assert re.compile(separator).search("") is None


def test_a_bundle_on_one_line_is_cut_behind_its_statements() -> None:
    content = "var a=1;" * 10 + "function b(){return 2}" * 5 + "\n"
    for language in ("javascript", "typescript", "css"):
        assert all(piece.endswith((";", "}")) for piece in cut(language, content, 30))
