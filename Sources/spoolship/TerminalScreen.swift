internal import Glibc

/// The size of a terminal, and how much of a text fits on it.
///
/// A screen that is drawn again and again must fit: lines that wrap, or that scroll the terminal, would leave
/// their rests above and below the next one.
struct TerminalScreen: Equatable {
    /// Lines that the terminal shows.
    let rows: Int
    /// Characters that fit on a line.
    let columns: Int

    /// Gives a size; nil for one that no terminal has.
    init?(rows: Int, columns: Int) {
        guard rows > 1, columns > 1 else { return nil }
        self.rows = rows
        self.columns = columns
    }

    /// The size of the terminal at a descriptor; nil if it is not a terminal, or does not know its size (as
    /// some serial lines).
    init?(of descriptor: Int32) {
        var size = winsize()
        guard ioctl(descriptor, UInt(TIOCGWINSZ), &size) == 0 else { return nil }
        self.init(rows: Int(size.ws_row), columns: Int(size.ws_col))
    }

    /// The part of the lines that fits. If lines are left out, the last one says how many.
    ///
    /// - Parameter lines: lines that have no control characters but escape sequences of styles (`ESC [ … m`).
    func fitted(_ lines: [Substring]) -> [String] {
        guard lines.count > rows else {
            return lines.map { cut($0) }
        }
        let shown = rows - 1
        let more = cut("… and \(lines.count - shown) more lines: spoolship status")
        return lines.prefix(shown).map { cut($0) } + [more]
    }

    /// The beginning of a line that fits, with its styles ended.
    private func cut(_ line: some StringProtocol) -> String {
        var text = String.UnicodeScalarView()
        var width = 0
        var isInSequence = false
        var hasStyle = false
        for scalar in line.unicodeScalars {
            if scalar == "\u{1B}" {
                isInSequence = true
                hasStyle = true
            } else if isInSequence {
                isInSequence = scalar != "m"
            } else {
                width += TerminalScreen.width(of: scalar)
                guard width <= columns else { return String(text) + (hasStyle ? "\u{1B}[0m" : "") }
            }
            text.append(scalar)
        }
        return String(text)
    }

    /// Columns that a character takes: none for a mark on the letter before it, two for most of those of East
    /// Asia and for pictures (Unicode Standard Annex #11).
    private static func width(of scalar: Unicode.Scalar) -> Int {
        switch scalar.value {
        case ..<0x300: return 1
        case 0x1100...0x115F, 0x2E80...0xA4CF, 0xAC00...0xD7A3, 0xF900...0xFAFF, 0xFE30...0xFE6F,
            0xFF00...0xFF60, 0xFFE0...0xFFE6, 0x1F300...0x1FAFF, 0x20000...0x3FFFD:
            return 2
        default: return scalar.properties.generalCategory == .nonspacingMark ? 0 : 1
        }
    }
}
