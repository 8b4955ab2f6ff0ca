"""Source code and structured data, word for word."""

from garage.config import Extraction
from garage.extract.model import Extracted, kind_of
from garage.extract.text import verbatim

NAME = "code"
LIBRARIES = ("charset-normalizer",)
SETTINGS: tuple[str, ...] = ()
TOOLS: tuple[str, ...] = ()

_LANGUAGES = {
    "c": ".c .h",
    "cobol": ".cbl .cob .cpy",
    "cpp": ".cc .cpp .cxx .c++ .hh .hpp .hxx .h++ .inl .ipp .cu .cuh",
    "csharp": ".cs .csx",
    "css": ".css .scss .sass .less",
    "elixir": ".ex .exs",
    "go": ".go",
    "haskell": ".hs .lhs",
    "html": ".vue .svelte .astro .jinja .jinja2 .j2 .hbs .erb",
    "java": ".java",
    "javascript": ".js .jsx .mjs .cjs",
    "kotlin": ".kt .kts",
    "latex": ".sty .cls .bib",
    "lua": ".lua",
    "php": ".php .phtml",
    "powershell": ".ps1 .psm1 .psd1",
    "proto": ".proto",
    "python": ".py .pyi .pyw .pyx sconstruct sconscript",
    "r": ".r",
    "ruby": ".rb .rake .gemspec gemfile rakefile vagrantfile podfile fastfile",
    "rust": ".rs",
    "scala": ".scala .sc .sbt",
    "shell": ".sh .bash .zsh .fish .ksh .bats",
    "solidity": ".sol",
    "sql": ".sql .ddl .psql",
    "swift": ".swift",
    "typescript": ".ts .tsx .mts .cts",
    "text": (
        ".asm .s .awk .bat .cmd .clj .cljs .cljc .edn .cmake .coffee .cr .d .dart .diff .patch .dockerfile"
        " .el .elm .erl .hrl .f .f90 .f95 .for .fs .fsi .fsx .gd .glsl .gradle .graphql .gql .groovy .hcl .jl"
        " .lisp .cl .m .mm .mk .ml .mli .nim .nix .pas .pl .pm .pro .sv .svh .rkt .scm .tcl .tf"
        " .thrift .v .vb .vhd .vhdl .vim .wgsl .zig .json .jsonc .json5 .geojson .yaml .yml"
        " .toml .ini .cfg .conf .properties .xml .xsd .xsl .xslt .wsdl .plist .editorconfig .gitignore"
        " .gitattributes .gitmodules .dockerignore makefile gnumakefile dockerfile containerfile"
        " cmakelists.txt jenkinsfile procfile justfile build.bazel workspace.bazel go.mod requirements.txt"
    ),
}
_TABLES = ".csv .tsv .psv"

SUFFIXES = {ending: f"code:{language}" for language, endings in _LANGUAGES.items() for ending in endings.split()}
SUFFIXES |= dict.fromkeys(_TABLES.split(), "tabular")


def extract(raw: bytes, *, name: str, settings: Extraction) -> Extracted:
    """Return the text as it stands, of the kind 'code:<language>', or 'tabular' for tables of separated values.

    Raises:
        Unsupported: it is no text at all (a video called .ts).
    """
    del settings
    return verbatim(raw, kind_of(name, SUFFIXES, "code:text"))
