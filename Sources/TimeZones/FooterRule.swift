internal import EventLoops

/// The rule for the time after a file's last transition: a POSIX `TZ` string.
///
/// Source: RFC 9636, section 3.3.1; POSIX.1-2017, section 8.3; with the extension of version 3 (hours
/// from -167 to 167).
struct FooterRule: Sendable, Equatable {
    /// When a change takes place each year.
    struct Change: Sendable, Equatable {
        /// The day of a change, in one of the three notations of POSIX.
        enum Day: Sendable, Equatable {
            /// `Jn`: day 1…365; 29 February is never counted.
            case julian(Int)
            /// `n`: day 0…365; 29 February is counted.
            case ordinal(Int)
            /// `Mm.w.d`: the w-th (5: the last) day d (0: Sunday) of month m.
            case weekday(month: Int, week: Int, day: Int)
        }

        var day: Day
        /// Seconds after midnight in the local time before the change; may be negative or beyond the
        /// day. Default 02:00.
        var time = 2 * 3600

        /// The change's local time in a year, in seconds since 1970 as if it were UTC.
        func seconds(in year: Int) -> Int64 {
            let date: LocalDate
            switch day {
            case .julian(let number):
                let isLeap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
                date = LocalDate(year: year, month: 1, day: number + (isLeap && number >= 60 ? 1 : 0))
            case .ordinal(let number):
                date = LocalDate(year: year, month: 1, day: number + 1)
            case .weekday(let month, let week, let day):
                let first = LocalDate(year: year, month: month, day: 1)
                let next = LocalDate(year: year, month: month + 1, day: 1)
                var found = first.advanced(by: (day - first.weekday + 7) % 7 + (week - 1) * 7)
                while found >= next { found = found.advanced(by: -7) }
                date = found
            }
            // bounded: a day number is that of a date with 32 bits.
            return Int64(date.dayNumber) * 86_400 + Int64(time)
        }
    }

    /// Daylight saving time: its offset, and when it starts and ends.
    struct Daylight: Sendable, Equatable {
        /// Seconds east of UTC.
        var offset: Int
        var start: Change
        var end: Change
    }

    /// Seconds east of UTC in standard time.
    var standard: Int
    /// Daylight saving time; nil if the zone has none.
    var daylight: Daylight?

    /// Parses a rule; nil if the text is not one.
    init?(_ text: some Collection<UInt8>) {
        var parser = Parser(text: Array(text))
        // POSIX counts offsets west of Greenwich as positive.
        guard parser.name(), let west = parser.offset(maxHours: 24) else { return nil }
        standard = -west
        guard !parser.isAtEnd else { return }
        guard parser.name() else { return nil }
        var offset = standard + 3600
        if !parser.isAtEnd, parser.peek != UInt8(ascii: ",") {
            guard let west = parser.offset(maxHours: 24) else { return nil }
            offset = -west
        }
        // POSIX leaves open when daylight saving time is in force if no dates are given; zone files
        // always state them.
        guard parser.consume(","), let start = parser.change(), parser.consume(","),
            let end = parser.change(),
            parser.isAtEnd
        else { return nil }
        daylight = Daylight(offset: offset, start: start, end: end)
    }

    /// The two changes of a year in order of time: the instant in seconds since 1970, and the offset
    /// from then on.
    func changes(in year: Int) -> [(at: Int64, offset: Int)] {
        guard let daylight else { return [] }
        let start = (at: daylight.start.seconds(in: year) - Int64(standard), offset: daylight.offset)
        let end = (at: daylight.end.seconds(in: year) - Int64(daylight.offset), offset: standard)
        return start.at < end.at ? [start, end] : [end, start]
    }

    /// A parser of `TZ` strings.
    private struct Parser {
        let text: [UInt8]
        var index = 0

        var isAtEnd: Bool { index >= text.count }
        /// The next byte; 0 at the end.
        var peek: UInt8 { index < text.count ? text[index] : 0 }

        /// Consumes a character; false if another one is there.
        mutating func consume(_ character: Unicode.Scalar) -> Bool {
            guard peek == UInt8(ascii: character), !isAtEnd else { return false }
            index += 1
            return true
        }

        /// Consumes an abbreviation: at least three letters, or anything in angle brackets.
        mutating func name() -> Bool {
            let start = index
            if consume("<") {
                while !isAtEnd, peek != UInt8(ascii: ">") { index += 1 }
                return index > start + 1 && consume(">")
            }
            while (peek | 0x20) >= UInt8(ascii: "a"), (peek | 0x20) <= UInt8(ascii: "z") { index += 1 }
            return index - start >= 3
        }

        /// A decimal number up to `most`; nil without a digit, or if it is larger.
        mutating func number(_ most: Int) -> Int? {
            let start = index
            var value = 0
            while peek >= UInt8(ascii: "0"), peek <= UInt8(ascii: "9"), value <= most {
                value = value * 10 + Int(peek - UInt8(ascii: "0"))
                index += 1
            }
            return index > start && value <= most ? value : nil
        }

        /// `[+-]hh[:mm[:ss]]` in seconds.
        mutating func offset(maxHours: Int) -> Int? {
            var sign = 1
            if consume("-") {
                sign = -1
            } else {
                _ = consume("+")
            }
            guard var seconds = number(maxHours).map({ $0 * 3600 }) else { return nil }
            for unit in [60, 1] where consume(":") {
                guard let part = number(59) else { return nil }
                seconds += part * unit
            }
            return sign * seconds
        }

        /// A date with an optional time behind a slash.
        mutating func change() -> Change? {
            var change: Change
            if consume("M") {
                guard let month = number(12), month >= 1, consume("."), let week = number(5), week >= 1,
                    consume("."),
                    let day = number(6)
                else { return nil }
                change = Change(day: .weekday(month: month, week: week, day: day))
            } else if consume("J") {
                guard let day = number(365), day >= 1 else { return nil }
                change = Change(day: .julian(day))
            } else {
                guard let day = number(365) else { return nil }
                change = Change(day: .ordinal(day))
            }
            if consume("/") {
                guard let time = offset(maxHours: 167) else { return nil }
                change.time = time
            }
            return change
        }
    }
}
