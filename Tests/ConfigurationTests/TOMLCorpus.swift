/// TOML texts that cover the grammar of TOML 1.0 rule by rule, each with what it must read as.
///
/// Ours: written from the rules, named by them. Values are shown by `TOMLNode.shown`: tables with their keys in order, dates
/// and times as `date`, because no setting takes one.
///
/// Source: https://toml.io/en/v1.0.0 and its grammar, toml.abnf.
enum TOMLCorpus {
    struct Valid: Sendable, CustomStringConvertible {
        let rule: String
        let text: String
        let value: String
        var description: String { rule }

        init(_ rule: String, _ text: String, _ value: String) {
            self.rule = rule
            self.text = text
            self.value = value
        }
    }

    struct Invalid: Sendable, CustomStringConvertible {
        let rule: String
        let text: String
        /// The line that the mistake must be told with.
        let line: Int
        var description: String { rule }

        init(_ rule: String, _ text: String, line: Int = 1) {
            self.rule = rule
            self.text = text
            self.line = line
        }
    }

    static let valid: [Valid] = expressions + keys + strings + numbers + dates + containers + tables

    static let expressions: [Valid] = [
        Valid("toml: nothing", "", "{}"),
        Valid("toml: a line feed", "\n", "{}"),
        Valid("newline: LF and CR LF mixed", "a = 1\r\n\nb = 2\r\n", "{a: 1, b: 2}"),
        Valid("toml: no newline at the end", "a = 1", "{a: 1}"),
        Valid("ws: tabs and spaces around everything", " \t a\t=\t 1 \t", "{a: 1}"),
        Valid("ws: none", "a=1", "{a: 1}"),
        Valid("ws: a line of white space", "  \t \na = 1\n\t", "{a: 1}"),
        Valid("comment: a line of its own", "# so\na = 1 # and so\n#", "{a: 1}"),
        Valid("comment: behind a heading", "[t] # so\na = 1", "{t: {a: 1}}"),
        Valid("comment: empty, and with a number sign in it", "#\n# # #\na = 1 ##", "{a: 1}"),
        Valid("non-ascii: in a comment", "# \u{80} é € \u{D7FF}\u{E000}\u{10FFFF}\na = 1", "{a: 1}"),
        Valid("non-eol: a tab in a comment", "#\ta\tb\na = 1", "{a: 1}"),
        Valid("comment: what looks like more is none", "# a = 1\n# [b\n#\"\"\"\nc = 3", "{c: 3}"),
        Valid(
            "number sign in strings is no comment", "a = \"# no\"\nb = '# no'", "{a: \"# no\", b: \"# no\"}"),
    ]

    static let keys: [Valid] = [
        Valid("unquoted-key: letters, digits, - and _", "aZ09-_ = 1\n-_- = 2", "{-_-: 2, aZ09-_: 1}"),
        Valid("unquoted-key: digits only", "1234 = 1", "{1234: 1}"),
        Valid("unquoted-key: words of values", "true = 1\ninf = 2\nnan = 3", "{inf: 2, nan: 3, true: 1}"),
        Valid("unquoted-key: what looks like a date", "2026-11-22 = 1", "{2026-11-22: 1}"),
        Valid(
            "unquoted-key: what looks like numbers", "0x10 = 1\n-1 = 2\n1e5 = 3", "{-1: 2, 0x10: 1, 1e5: 3}"),
        Valid("quoted-key: basic", "\"a b\" = 1\n\"é\" = 2\n\"=\" = 3", "{=: 3, a b: 1, é: 2}"),
        Valid("quoted-key: basic with escapes", "\"\\u0061\\t\\\"\" = 1", "{a\t\": 1}"),
        Valid("quoted-key: literal", "'a\"b' = 1\n'\\n' = 2", "{\\n: 2, a\"b: 1}"),
        Valid("quoted-key: empty", "\"\" = 1", "{: 1}"),
        Valid("quoted-key: empty, literal", "'' = 1", "{: 1}"),
        Valid("quoted-key: the same as bare", "\"a\" = 1\nb = 2", "{a: 1, b: 2}"),
        Valid("dotted-key", "a.b.c = 1\na.b.d = 2", "{a: {b: {c: 1, d: 2}}}"),
        Valid("dotted-key: white space around dots", "a . b\t.\tc = 1", "{a: {b: {c: 1}}}"),
        Valid("dotted-key: quoted parts", "a.\"b.c\".'d e' = 1", "{a: {b.c: {d e: 1}}}"),
        Valid("dotted-key: numbers are parts", "3.14 = 1", "{3: {14: 1}}"),
        Valid("dotted-key: out of order", "a.b = 1\nc = 2\na.d = 3", "{a: {b: 1, d: 3}, c: 2}"),
        Valid(
            "dotted-key: in a heading's table", "[t]\na.b = 1\n[u]\na.b = 2",
            "{t: {a: {b: 1}}, u: {a: {b: 2}}}"),
    ]

    static let strings: [Valid] = [
        Valid("basic-string: empty", "a = \"\"", "{a: \"\"}"),
        Valid(
            "basic-unescaped: all that needs no escape", "a = \"!#[]~ \té\u{10FFFF}\"",
            "{a: \"!#[]~ \té\u{10FFFF}\"}"),
        Valid("escape-seq-char: each", #"a = "\b\t\n\f\r\"\\""#, "{a: \"\u{8}\t\n\u{C}\r\"\\\"}"),
        Valid("escape-seq-char: u", #"a = "\u0041\u00e9\u20AC\uD7FF\uE000""#, "{a: \"Aé€\u{D7FF}\u{E000}\"}"),
        Valid("escape-seq-char: U", #"a = "\U00000041\U0001F600\U0010FFFF""#, "{a: \"A😀\u{10FFFF}\"}"),
        Valid("escape-seq-char: NUL and DEL", #"a = "\u0000\u007F""#, "{a: \"\0\u{7F}\"}"),
        Valid("basic-string: an escaped backslash before the end", #"a = "\\""#, "{a: \"\\\"}"),
        Valid("ml-basic-string: empty", "a = \"\"\"\"\"\"", "{a: \"\"}"),
        Valid("ml-basic-string: the first newline goes", "a = \"\"\"\nb\nc\"\"\"", "{a: \"b\nc\"}"),
        Valid("ml-basic-string: only the first newline goes", "a = \"\"\"\n\nb\"\"\"", "{a: \"\nb\"}"),
        Valid("ml-basic-string: the first CR LF goes", "a = \"\"\"\r\nb\"\"\"", "{a: \"b\"}"),
        Valid("mlb-quotes: one and two inside", "a = \"\"\"b\"c\"\"d\"\"\"", "{a: \"b\"c\"\"d\"}"),
        Valid("mlb-quotes: one before the end", "a = \"\"\"b\"\"\"\"", "{a: \"b\"\"}"),
        Valid("mlb-quotes: two before the end", "a = \"\"\"b\"\"\"\"\"", "{a: \"b\"\"\"}"),
        Valid("mlb-quotes: three, one escaped", "a = \"\"\"b\\\"\"\"c\"\"\"", "{a: \"b\"\"\"c\"}"),
        Valid("mlb-escaped-nl: joins lines", "a = \"\"\"b \\\n   c\\\n\n\t d\"\"\"", "{a: \"b cd\"}"),
        Valid("mlb-escaped-nl: with white space behind it", "a = \"\"\"b\\ \t \n  c\"\"\"", "{a: \"bc\"}"),
        Valid("mlb-escaped-nl: before the end", "a = \"\"\"b\\\n\"\"\"", "{a: \"b\"}"),
        Valid("mlb-content: escapes", #"a = """\u0041\t\\""""#, "{a: \"A\t\\\"}"),
        Valid("mlb-content: what ends nothing", "a = \"\"\"''' # [\"\"\"", "{a: \"''' # [\"}"),
        Valid("literal-string: empty", "a = ''", "{a: \"\"}"),
        Valid("literal-char: nothing is an escape", #"a = 'C:\n\u0041\'"#, #"{a: "C:\n\u0041\"}"#),
        Valid(
            "literal-char: tab, quotation marks, not ASCII", "a = '\t\"é\u{10FFFF}'",
            "{a: \"\t\"é\u{10FFFF}\"}"),
        Valid("ml-literal-string: empty", "a = ''''''", "{a: \"\"}"),
        Valid("ml-literal-string: the first newline goes", "a = '''\nb\\\nc'''", "{a: \"b\\\nc\"}"),
        Valid("mll-quotes: one and two inside", "a = '''b'c''d'''", "{a: \"b'c''d\"}"),
        Valid("mll-quotes: two before the end", "a = '''b'''''", "{a: \"b''\"}"),
        Valid("mll-content: three quotation marks", "a = '''\"\"\"'''", "{a: \"\"\"\"\"}"),
    ]

    static let numbers: [Valid] = [
        Valid("dec-int", "a = 0\nb = 7\nc = 1234567890", "{a: 0, b: 7, c: 1234567890}"),
        Valid("dec-int: signs", "a = +7\nb = -7\nc = +0\nd = -0", "{a: 7, b: -7, c: 0, d: 0}"),
        Valid("dec-int: underscores", "a = 1_000\nb = 1_2_3", "{a: 1000, b: 123}"),
        Valid(
            "dec-int: the ends of 64 bits", "a = 9223372036854775807\nb = -9223372036854775808",
            "{a: 9223372036854775807, b: -9223372036854775808}"),
        Valid(
            "hex-int", "a = 0xDEADbeef\nb = 0x00ff\nc = 0xdead_beef", "{a: 3735928559, b: 255, c: 3735928559}"
        ),
        Valid("hex-int: the largest", "a = 0x7fffffffffffffff", "{a: 9223372036854775807}"),
        Valid("oct-int", "a = 0o755\nb = 0o01\nc = 0o7_7", "{a: 493, b: 1, c: 63}"),
        Valid("bin-int", "a = 0b1101\nb = 0b0\nc = 0b1_0", "{a: 13, b: 0, c: 2}"),
        Valid("float: frac", "a = 1.5\nb = -0.25\nc = +3.0", "{a: 1.5, b: -0.25, c: 3.0}"),
        Valid(
            "float: exp", "a = 5e3\nb = 1E-2\nc = 2e+02\nd = 1e06",
            "{a: 5000.0, b: 0.01, c: 200.0, d: 1000000.0}"),
        Valid("float: frac and exp", "a = 6.25e-1", "{a: 0.625}"),
        Valid("float: underscores", "a = 1_000.000_5\nb = 1e1_0", "{a: 1000.0005, b: 10000000000.0}"),
        Valid("float: zeros", "a = 0.0\nb = -0.0\nc = 0e0", "{a: 0.0, b: -0.0, c: 0.0}"),
        Valid("special-float", "a = inf\nb = +inf\nc = -inf", "{a: inf, b: inf, c: -inf}"),
        Valid("special-float: nan", "a = nan\nb = +nan\nc = -nan", "{a: nan, b: nan, c: nan}"),
        Valid("boolean", "a = true\nb = false", "{a: true, b: false}"),
    ]

    static let dates: [Valid] = [
        Valid(
            "offset-date-time", "a = 2026-11-22T07:32:00Z\nb = 2026-11-22T00:32:00-07:00",
            "{a: date, b: date}"),
        Valid("offset-date-time: fractions", "a = 2026-11-22T00:32:00.999999+23:59", "{a: date}"),
        Valid(
            "time-delim: space and small letters", "a = 2026-11-22 07:32:00z\nb = 2026-11-22t07:32:00Z",
            "{a: date, b: date}"),
        Valid("local-date-time", "a = 2026-11-22T07:32:00\nb = 2026-11-22T00:32:00.5", "{a: date, b: date}"),
        Valid("local-date", "a = 2026-11-22\nb = 2024-02-29", "{a: date, b: date}"),
        Valid("local-time", "a = 07:32:00\nb = 23:59:59.999", "{a: date, b: date}"),
    ]

    static let containers: [Valid] = [
        Valid("array: empty", "a = []\nb = [ ]\nc = [\n]", "{a: [], b: [], c: []}"),
        Valid("array-values", "a = [1, 2,3 ,4]", "{a: [1, 2, 3, 4]}"),
        Valid("array-values: a comma at the end", "a = [1,]\nb = [1 , ]", "{a: [1], b: [1]}"),
        Valid("ws-comment-newline: everywhere", "a = [ # b\n\n1 # c\n, # d\n 2\n\t# e\n]", "{a: [1, 2]}"),
        Valid(
            "array-values: of many kinds", "a = [1, 1.5, \"b\", true, 07:32:00, [], {}]",
            "{a: [1, 1.5, \"b\", true, date, [], {}]}"),
        Valid("array: in arrays", "a = [[1], [[2]], []]", "{a: [[1], [[2]], []]}"),
        Valid("array: brackets in strings", "a = [\"]\", '[', \"\"\"]\"\"\"]", "{a: [\"]\", \"[\", \"]\"]}"),
        Valid("inline-table: empty", "a = {}\nb = { }", "{a: {}, b: {}}"),
        Valid("inline-table-keyvals", "a = { b = 1, c = \"d\" }", "{a: {b: 1, c: \"d\"}}"),
        Valid("inline-table: no white space", "a={b=1,c=2}", "{a: {b: 1, c: 2}}"),
        Valid(
            "inline-table: dotted and quoted keys", "a = { b.c = 1, \"d e\" = 2, b.f = 3 }",
            "{a: {b: {c: 1, f: 3}, d e: 2}}"),
        Valid("inline-table: in inline tables", "a = { b = { c = { } } }", "{a: {b: {c: {}}}}"),
        Valid(
            "inline-table: in arrays over lines", "a = [ { b = 1 },\n { b = 2 } ]", "{a: [{b: 1}, {b: 2}]}"),
        Valid("inline-table: an array over lines in it", "a = { b = [\n1,\n2\n] }", "{a: {b: [1, 2]}}"),
        Valid(
            "inline-table: a string over lines in it", "a = { b = \"\"\"\nc\nd\"\"\" }", "{a: {b: \"c\nd\"}}"),
    ]

    static let tables: [Valid] = [
        Valid("std-table: empty", "[a]", "{a: {}}"),
        Valid(
            "std-table: white space", "[ a . \"b\" ]\nc = 1\n  [d]\n  e = 2", "{a: {b: {c: 1}}, d: {e: 2}}"),
        Valid("std-table: quoted and dotted", "[a.'b.c'.\"\"]\nd = 1", "{a: {b.c: {: {d: 1}}}}"),
        Valid("std-table: the root is before the first", "a = 1\n[b]\na = 2", "{a: 1, b: {a: 2}}"),
        Valid("std-table: inner before outer", "[a.b]\nc = 1\n[a]\nd = 2", "{a: {b: {c: 1}, d: 2}}"),
        Valid("std-table: out of order", "[a]\n[b]\n[a.c]\nd = 1", "{a: {c: {d: 1}}, b: {}}"),
        Valid("std-table: below what dots made", "[a]\nb.c = 1\n[a.d]\ne = 2", "{a: {b: {c: 1}, d: {e: 2}}}"),
        Valid("array-table", "[[a]]\nb = 1\n[[a]]\n[[a]]\nb = 3", "{a: [{b: 1}, {}, {b: 3}]}"),
        Valid("array-table: white space", "[[ a . b ]]\nc = 1", "{a: {b: [{c: 1}]}}"),
        Valid(
            "array-table: tables in its last", "[[a]]\n[a.b]\nc = 1\n[[a]]\n[a.b]\nc = 2",
            "{a: [{b: {c: 1}}, {b: {c: 2}}]}"),
        Valid(
            "array-table: in its last", "[[a]]\n[[a.b]]\nc = 1\n[[a.b]]\nc = 2\n[[a]]\n[[a.b]]\nc = 3",
            "{a: [{b: [{c: 1}, {c: 2}]}, {b: [{c: 3}]}]}"),
        Valid("array-table: dotted keys in it", "[[a]]\nb.c = 1\nb.d = 2", "{a: [{b: {c: 1, d: 2}}]}"),
    ]

    static let invalid: [Invalid] =
        badExpressions + badKeys + badStrings + badNumbers + badDates + badContainers + badTables

    static let badExpressions: [Invalid] = [
        Invalid("keyval: no value", "\na =", line: 2),
        Invalid("keyval: no value before a comment", "a = # b"),
        Invalid("keyval: no key", " = 1"),
        Invalid("keyval: no equals sign", "a 1"),
        Invalid("keyval: a key alone", "\n\na\n", line: 3),
        Invalid("keyval: two on a line", "a = 1 b = 2"),
        Invalid("keyval: the value in the next line", "a =\n1"),
        Invalid("keyval: two values", "a = 1 2"),
        Invalid("keyval: two equals signs", "a == 1"),
        Invalid("val: a bare word", "a = b"),
        Invalid("val: a comma behind it", "a = 1,"),
        Invalid("expression: behind a heading", "[a] b = 1"),
        Invalid("comment: behind a key", "a # = 1"),
        Invalid("non-eol: a control character in a comment", "a = 1\n# \u{1}", line: 2),
        Invalid("non-eol: NUL in a comment", "# \0"),
        Invalid("non-eol: DEL in a comment", "# \u{7F}"),
        Invalid("newline: a carriage return alone", "a = 1\rb = 2"),
        Invalid("newline: a carriage return in a comment", "# a\rb"),
        Invalid("ws: a form feed", "a = 1\u{C}"),
        Invalid("ws: a no-break space", "a =\u{A0}1"),
        Invalid("expression: NUL", "\0"),
    ]

    static let badKeys: [Invalid] = [
        Invalid("unquoted-key: not ASCII", "é = 1"),
        Invalid("unquoted-key: a plus sign", "a+b = 1"),
        Invalid("unquoted-key: a space", "a b = 1"),
        Invalid("quoted-key: over lines", "\"\"\"a\"\"\" = 1"),
        Invalid("quoted-key: over lines, literal", "'''a''' = 1"),
        Invalid("quoted-key: no end", "\"a = 1"),
        Invalid("quoted-key: a bad escape", #""\q" = 1"#),
        Invalid("quoted-key: text behind it", "\"a\"b = 1"),
        Invalid("dotted-key: begins with a dot", ".a = 1"),
        Invalid("dotted-key: ends with a dot", "a. = 1"),
        Invalid("dotted-key: two dots", "a..b = 1"),
        Invalid("key: twice", "a = 1\na = 2", line: 2),
        Invalid("key: twice, once quoted", "a = 1\n\"a\" = 2", line: 2),
        Invalid("dotted-key: twice", "a.b = 1\na.b = 2", line: 2),
        Invalid("dotted-key: into a value", "a = 1\na.b = 2", line: 2),
        Invalid("dotted-key: over a table", "a.b = 1\na = 2", line: 2),
        Invalid("dotted-key: into an inline table", "a = { b = 1 }\na.c = 2", line: 2),
        Invalid("dotted-key: into an array", "a = []\na.b = 1", line: 2),
        Invalid("dotted-key: into a table of a heading", "[a.b]\nc = 1\n[a]\nb.d = 2", line: 4),
    ]

    static let badStrings: [Invalid] = [
        Invalid("basic-string: no end", "a = \"b\nc = 1"),
        Invalid("basic-string: no end of text", "a = \"b"),
        Invalid("basic-string: over lines", "a = \"b\nc\""),
        Invalid("basic-string: text behind it", "a = \"b\"c"),
        Invalid("basic-unescaped: a control character", "a = \"\u{1}\""),
        Invalid("basic-unescaped: NUL", "a = \"\0\""),
        Invalid("basic-unescaped: DEL", "a = \"\u{7F}\""),
        Invalid("basic-unescaped: a carriage return", "a = \"b\rc\""),
        Invalid("escape-seq-char: unknown", #"a = "\q""#),
        Invalid("escape-seq-char: e, of TOML 1.1", #"a = "\e""#),
        Invalid("escape-seq-char: x, of TOML 1.1", #"a = "\x41""#),
        Invalid("escape-seq-char: a space", #"a = "\ b""#),
        Invalid("escape-seq-char: short u", #"a = "\u41""#),
        Invalid("escape-seq-char: short U", #"a = "\U0001F60""#),
        Invalid("escape-seq-char: no digits", #"a = "\uzzzz""#),
        Invalid("escape-seq-char: a surrogate", #"a = "\uD800""#),
        Invalid("escape-seq-char: the last surrogate", #"a = "\uDFFF""#),
        Invalid("escape-seq-char: beyond Unicode", #"a = "\U00110000""#),
        Invalid("escape-seq-char: far beyond Unicode", #"a = "\UFFFFFFFF""#),
        Invalid("basic-string: a backslash before the end", #"a = "\""#),
        Invalid("ml-basic-string: no end", "a = \"\"\"b\n\"\"", line: 2),
        Invalid("ml-basic-string: six at the end", "a = \"\"\"b\"\"\"\"\"\""),
        Invalid("mlb-unescaped: a control character", "a = \"\"\"\n\u{1}\"\"\"", line: 2),
        Invalid("mlb-unescaped: a carriage return alone", "a = \"\"\"b\rc\"\"\""),
        Invalid("mlb-escaped-nl: text behind the backslash", "a = \"\"\"b\\ c\n\"\"\""),
        Invalid("literal-string: no end", "a = 'b\nc = 1"),
        Invalid("literal-string: an apostrophe in it", "a = 'b'c'"),
        Invalid("literal-char: a control character", "a = '\u{1F}'"),
        Invalid("literal-char: a line feed", "a = 'b\nc'"),
        Invalid("ml-literal-string: no end", "a = '''b''"),
        Invalid("ml-literal-string: six at the end", "a = '''b''''''"),
        Invalid("mll-char: DEL", "a = '''\u{7F}'''"),
        Invalid("mll-char: a carriage return alone", "a = '''b\rc'''"),
    ]

    static let badNumbers: [Invalid] = [
        Invalid("dec-int: a zero before it", "a = 01"),
        Invalid("dec-int: a zero behind the sign", "a = -01"),
        Invalid("dec-int: two zeros", "a = 00"),
        Invalid("dec-int: two signs", "a = --1"),
        Invalid("dec-int: a sign alone", "a = +"),
        Invalid("dec-int: an underscore before it", "a = _1"),
        Invalid("dec-int: an underscore behind it", "a = 1_"),
        Invalid("dec-int: two underscores", "a = 1__2"),
        Invalid("dec-int: beyond 64 bits", "a = 9223372036854775808"),
        Invalid("dec-int: below 64 bits", "a = -9223372036854775809"),
        Invalid("dec-int: a letter", "a = 1a"),
        Invalid("dec-int: digits of another script", "a = ١"),
        Invalid("hex-int: a sign", "a = +0x1"),
        Invalid("hex-int: a capital X", "a = 0X1"),
        Invalid("hex-int: no digits", "a = 0x"),
        Invalid("hex-int: an underscore first", "a = 0x_1"),
        Invalid("hex-int: an underscore last", "a = 0x1_"),
        Invalid("hex-int: beyond 64 bits", "a = 0x8000000000000000"),
        Invalid("hex-int: a letter", "a = 0xg"),
        Invalid("oct-int: a capital O", "a = 0O7"),
        Invalid("oct-int: an eight", "a = 0o8"),
        Invalid("oct-int: a sign", "a = -0o7"),
        Invalid("bin-int: a two", "a = 0b2"),
        Invalid("bin-int: a capital B", "a = 0B1"),
        Invalid("bin-int: no digits", "a = 0b"),
        Invalid("float: nothing before the dot", "a = .5"),
        Invalid("float: nothing behind the dot", "a = 5."),
        Invalid("float: a dot before the exponent", "a = 5.e1"),
        Invalid("float: two dots", "a = 1.2.3"),
        Invalid("float: a zero before it", "a = 03.14"),
        Invalid("float: an underscore before the dot", "a = 1_.5"),
        Invalid("float: an underscore behind the dot", "a = 1._5"),
        Invalid("float: an underscore last", "a = 1.5_"),
        Invalid("exp: no digits", "a = 1e"),
        Invalid("exp: an underscore first", "a = 1e_5"),
        Invalid("exp: a fraction", "a = 1e5.5"),
        Invalid("exp: twice", "a = 1e5e5"),
        Invalid("special-float: capitals", "a = Inf"),
        Invalid("special-float: NaN", "a = NaN"),
        Invalid("special-float: infinity", "a = infinity"),
        Invalid("boolean: capitals", "a = True"),
        Invalid("boolean: begun", "a = tru"),
        Invalid("boolean: too long", "a = falsey"),
    ]

    static let badDates: [Invalid] = [
        Invalid("date-month: 0", "a = 2026-00-01"),
        Invalid("date-month: 13", "a = 2026-13-01"),
        Invalid("date-month: one digit", "a = 2026-1-01"),
        Invalid("date-mday: 0", "a = 2026-01-00"),
        Invalid("date-mday: 32", "a = 2026-01-32"),
        Invalid("date-mday: 30 February", "a = 2024-02-30"),
        Invalid("date-mday: 29 February of another year", "a = 2025-02-29"),
        Invalid("date-fullyear: two digits", "a = 26-01-01"),
        Invalid("time-hour: 24", "a = 24:00:00"),
        Invalid("time-minute: 60", "a = 00:60:00"),
        Invalid("time-second: 61", "a = 00:00:61"),
        Invalid("partial-time: no seconds", "a = 07:32"),
        Invalid("time-secfrac: no digits", "a = 07:32:00."),
        Invalid("time-offset: hour 24", "a = 2026-11-22T07:32:00+24:00"),
        Invalid("time-offset: minute 60", "a = 2026-11-22T07:32:00+00:60"),
        Invalid("time-offset: on a local time", "a = 07:32:00Z"),
        Invalid("time-delim: a letter", "a = 2026-11-22x07:32:00Z"),
        Invalid("offset-date-time: a T and nothing", "a = 2026-11-22T"),
    ]

    static let badContainers: [Invalid] = [
        Invalid("array: no end", "a = [1, 2\n"),
        Invalid("array: no comma", "a = [1 2]"),
        Invalid("array: a comma first", "a = [,1]"),
        Invalid("array: two commas", "a = [1,,2]"),
        Invalid("array: a comma alone", "a = [,]"),
        Invalid("array: an end too many", "a = [1]]"),
        Invalid("array: another end", "a = [1}"),
        Invalid("array: a key in it", "a = [b = 1]"),
        Invalid("inline-table: no end", "a = { b = 1"),
        Invalid("inline-table: a newline", "a = { b = 1,\nc = 2 }"),
        Invalid("inline-table: a comma at the end", "a = { b = 1, }"),
        Invalid("inline-table: a comma first", "a = { , b = 1 }"),
        Invalid("inline-table: two commas", "a = { b = 1,, c = 2 }"),
        Invalid("inline-table: no comma", "a = { b = 1 c = 2 }"),
        Invalid("inline-table: a comment", "a = { b = 1 # c\n}"),
        Invalid("inline-table: a key twice", "a = { b = 1, b = 2 }"),
        Invalid("inline-table: a key over a dotted one", "a = { b.c = 1, b = 2 }"),
        Invalid("inline-table: into an inline table in it", "a = { b = { c = 1 }, b.d = 2 }"),
        Invalid("inline-table: a value alone", "a = { 1 }"),
    ]

    static let badTables: [Invalid] = [
        Invalid("std-table: empty name", "[]"),
        Invalid("std-table: no end", "[a\nb = 1"),
        Invalid("std-table: text behind it", "[a] b"),
        Invalid("std-table: a bracket too many", "[a]]"),
        Invalid("std-table: begins with a dot", "[.a]"),
        Invalid("std-table: ends with a dot", "[a.]"),
        Invalid("std-table: two dots", "[a..b]"),
        Invalid("std-table: a space in the name", "[a b]"),
        Invalid("std-table: over lines", "[a\n]"),
        Invalid("std-table: twice", "[a]\nb = 1\n[a]\nc = 2", line: 3),
        Invalid("std-table: over a value", "a = 1\n[a]", line: 2),
        Invalid("std-table: below a value", "a = 1\n[a.b]", line: 2),
        Invalid("std-table: over an inline table", "a = {}\n[a]", line: 2),
        Invalid("std-table: below an inline table", "a = {}\n[a.b]", line: 2),
        Invalid("std-table: over what dots made", "[a]\nb.c = 1\n[a.b]", line: 3),
        Invalid("std-table: over an array of tables", "[[a]]\n[a]", line: 2),
        Invalid("array-table: empty name", "[[]]"),
        Invalid("array-table: no end", "[[a]\nb = 1"),
        Invalid("array-table: a space between brackets", "[ [a]]"),
        Invalid("array-table: a space between the ends", "[[a] ]"),
        Invalid("array-table: over a table", "[a]\n[[a]]", line: 2),
        Invalid("array-table: over a value", "a = 1\n[[a]]", line: 2),
        Invalid("array-table: over an array", "a = []\n[[a]]", line: 2),
        Invalid("array-table: over an array of inline tables", "a = [{}]\n[[a]]", line: 2),
        Invalid("array-table: over what dots made", "a.b = 1\n[[a]]", line: 2),
    ]

    /// Bytes that are not UTF-8, in each place where bytes may be, and where the first wrong one is.
    static let notUTF8: [(place: String, bytes: [UInt8], line: Int, column: Int)] = [
        ("a byte of Latin-1 in a string", Array("t = \"abc".utf8) + [0xE9] + Array("\"\n".utf8), 1, 9),
        ("a comment", Array("a = 1\n# é ".utf8) + [0xFF] + Array("\n".utf8), 2, 5),
        ("a bare key", [0x61, 0xE9] + Array(" = 1".utf8), 1, 2),
        ("a quoted key", Array("\"".utf8) + [0xC3] + Array("\" = 1".utf8), 1, 2),
        ("a literal string", Array("a = '".utf8) + [0xFE] + Array("'".utf8), 1, 6),
        ("a string over lines", Array("a = \"\"\"\nb\n".utf8) + [0x80] + Array("\"\"\"".utf8), 3, 1),
        ("a sequence that is cut", Array("a = \"".utf8) + [0xE2, 0x82] + Array("\"".utf8), 1, 6),
        ("an overlong slash", Array("a = \"".utf8) + [0xC0, 0xAF] + Array("\"".utf8), 1, 6),
        ("a surrogate", Array("a = \"".utf8) + [0xED, 0xA0, 0x80] + Array("\"".utf8), 1, 6),
        ("beyond Unicode", Array("a = \"".utf8) + [0xF4, 0x90, 0x80, 0x80] + Array("\"".utf8), 1, 6),
        ("UTF-16", [0xFF, 0xFE, 0x61, 0x00, 0x3D, 0x00, 0x31, 0x00], 1, 1),
        ("the end", Array("a = 1\n".utf8) + [0xC3], 2, 1),
    ]
}
