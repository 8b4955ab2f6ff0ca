"""The control words of RTF that are not its own text, and what they mean."""

CHARACTERS = {
    "line": "\n",
    "lbr": "\n",
    "tab": "\t",
    "emdash": "\u2014",
    "endash": "\u2013",
    "emspace": " ",
    "enspace": " ",
    "qmspace": " ",
    "bullet": "\u2022",
    "lquote": "\u2018",
    "rquote": "\u2019",
    "ldblquote": "\u201c",
    "rdblquote": "\u201d",
}
"""Words that stand for characters."""

SECTIONS = ("par", "sect", "page", "column")
"""Words that end a paragraph."""

CONTEXTS = {
    "footnote": "note",
    "shptxt": "box",
    "dptxbxtext": "box",
    **dict.fromkeys(("header", "headerl", "headerr", "headerf", "footer", "footerl", "footerr", "footerf"), "margin"),
}
"""Groups whose text stands somewhere else than where the group does."""

INFO = {
    "title": "title",
    "author": "author",
    "operator": "last_modified_by",
    "subject": "subject",
    "keywords": "keywords",
    "category": "category",
    "doccomm": "description",
}
"""Properties of the document under the names that all kinds of file share."""

KNOWN = frozenset(("shpinst", "do", "dpinst", "nesttableprops", "shpgrp", "bkmkstart", "ftnsep"))
"""Groups that a reader may ignore and that hold text all the same, or nothing."""

SKIPPED = frozenset(
    (
        *("annotation", "atnauthor", "atndate", "atnicn", "atnid", "atnparent", "atnref", "atntime", "atrfend"),
        *("atrfstart", "background", "bkmkend", "bkmkstart", "blipuid", "buptim", "colorschememapping", "colortbl"),
        *("comment", "company", "datafield", "datastore", "docvar", "falt", "ffdeftext", "ffformat", "ffname", "file"),
        *("filetbl", "fldinst", "fname", "fontemb", "formfield", "ftncn", "ftnsep", "ftnsepc", "aftncn", "aftnsep"),
        *("aftnsepc", "generator", "hlinkbase", "htmltag", "latentstyles", "list", "listlevel", "listoverride"),
        *("listoverridetable", "listpicture", "listtable", "lsdlockedexcept", "manager", "mhtmltag", "mmathpr"),
        *("nonesttables", "nonshppict", "objalias", "objclass", "objdata", "objname", "objsect", "objtime", "panose"),
        *(
            "password",
            "passwordhash",
            "pgptbl",
            "picprop",
            "pict",
            "pn",
            "pnseclvl",
            "printim",
            "private",
            "protusertbl",
        ),
        *("revtbl", "rsidtbl", "rxe", "shppict", "shprslt", "sn", "sp", "sv", "svb", "tc", "template", "themedata"),
        *("txe", "userprops", "wgrffmtfilter", "writereservation", "xe", "xform", "xmlattrname", "xmlattrvalue"),
        *("xmlclose", "xmlname", "xmlnstbl", "xmlopen"),
    )
)
"""Groups without text for a reader: tables of settings, pictures, remarks, instructions of fields."""

CHARSETS = {
    0: "cp1252",
    2: "symbol",
    77: "mac_roman",
    78: "shift_jis",
    79: "euc_kr",
    80: "gb2312",
    81: "big5",
    83: "mac_cyrillic",
    85: "mac_greek",
    86: "mac_turkish",
    88: "mac_latin2",
    89: "mac_cyrillic",
    128: "cp932",
    129: "cp949",
    130: "johab",
    134: "cp936",
    136: "cp950",
    161: "cp1253",
    162: "cp1254",
    163: "cp1258",
    177: "cp1255",
    178: "cp1256",
    186: "cp1257",
    204: "cp1251",
    222: "cp874",
    238: "cp1250",
    254: "cp437",
    255: "cp850",
}
"""Encodings by the character set of a font; a set that is not here is the one of the document."""

_BULLETS = {0xB7: "\u2022", 0xA7: "\u25aa", 0xD8: "\u27a2", 0xFC: "\u2713", 0xA8: "\u25a1", 0xE0: "\u2192"}


def symbol(data: bytes) -> str:
    """Text in a font of symbols: bullets and ticks; what the other codes look like only the font knows."""
    return "".join(chr(code) if code < 0x80 else _BULLETS.get(code, "") for code in data)
