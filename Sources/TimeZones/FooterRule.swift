internal import EventLoops

/// The rule for the time after a file's last transition: a POSIX `TZ` text.
///
/// Source: RFC 9636, section 3.3.1; POSIX.1-2017, section 8.3; the extensions of version 3 (hours from -167 to 167).
struct FooterRule: Sendable, Equatable {
    /// When a change takes place in a year.
    struct Change: Sendable, Equatable {
        enum Day: Sendable, Equatable {
            /// `Jn`: 1…365, 29 February never counted.
            case julian(Int)
            /// `n`: 0…365, 29 February counted.
            case ordinal(Int)
            /// `Mm.w.d`: the w-th (5: the last) day d (0: Sunday) of month m.
            case weekday(month: Int, week: Int, day: Int)
        }

        var day: Day
        /// Seconds after midnight of local time before the change; may be beyond the day.
        var time = 2 * 3600

        /// The change's local time in a year, as if it were UTC, in seconds since 1970.
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

    /// What is in force for a part of the year.
    struct Daylight: Sendable, Equatable {
        var offset: Int
        var start: Change
        var end: Change
    }

    /// Seconds east of UTC in standard time.
    var standard: Int
    var daylight: Daylight?

    /// The rule of a text; nil when it is none.
    init?(_ text: some Collection<UInt8>) {
        var parser = Parser(text: Array(text))
        guard parser.name(), let west = parser.offset(maxHours: 24) else { return nil }
        standard = -west
        guard !parser.isAtEnd else { return }
        guard parser.name() else { return nil }
        var offset = standard + 3600
        if !parser.isAtEnd, parser.peek != UInt8(ascii: ",") {
            guard let west = parser.offset(maxHours: 24) else { return nil }
            offset = -west
        }
        // Without dates POSIX leaves them open; zone files always write them.
        guard parser.take(","), let start = parser.change(), parser.take(","), let end = parser.change(),
            parser.isAtEnd
        else { return nil }
        daylight = Daylight(offset: offset, start: start, end: end)
    }

    /// The changes of a year, in the order of time: when (UTC), and the offset from then on.
    func changes(in year: Int) -> [(at: Int64, offset: Int)] {
        guard let daylight else { return [] }
        let start = (at: daylight.start.seconds(in: year) - Int64(standard), offset: daylight.offset)
        let end = (at: daylight.end.seconds(in: year) - Int64(daylight.offset), offset: standard)
        return start.at < end.at ? [start, end] : [end, start]
    }

    private struct Parser {
        let text: [UInt8]
        var index = 0

        var isAtEnd: Bool { index >= text.count }
        var peek: UInt8 { index < text.count ? text[index] : 0 }

        mutating func take(_ character: Unicode.Scalar) -> Bool {
            guard peek == UInt8(ascii: character), !isAtEnd else { return false }
            index += 1
            return true
        }

        mutating func name() -> Bool {
            let start = index
            if take("<") {
                while !isAtEnd, peek != UInt8(ascii: ">") { index += 1 }
                return index > start + 1 && take(">")
            }
            while (peek | 0x20) >= UInt8(ascii: "a"), (peek | 0x20) <= UInt8(ascii: "z") { index += 1 }
            return index - start >= 3
        }

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
            if take("-") { sign = -1 } else { _ = take("+") }
            guard var seconds = number(maxHours).map({ $0 * 3600 }) else { return nil }
            for unit in [60, 1] where take(":") {
                guard let part = number(59) else { return nil }
                seconds += part * unit
            }
            return sign * seconds
        }

        mutating func change() -> Change? {
            var change: Change
            if take("M") {
                guard let month = number(12), month >= 1, take("."), let week = number(5), week >= 1, take("."),
                    let day = number(6)
                else { return nil }
                change = Change(day: .weekday(month: month, week: week, day: day))
            } else if take("J") {
                guard let day = number(365), day >= 1 else { return nil }
                change = Change(day: .julian(day))
            } else {
                guard let day = number(365) else { return nil }
                change = Change(day: .ordinal(day))
            }
            if take("/") {
                guard let time = offset(maxHours: 167) else { return nil }
                change.time = time
            }
            return change
        }
    }
}
