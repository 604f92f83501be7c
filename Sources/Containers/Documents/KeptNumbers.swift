internal import Model

/// Whether the numbers of a JSON text are kept as they are spelled.
enum KeptNumbers {
    /// The first number that reading would change; nil for none.
    ///
    /// - Parameter text: valid JSON.
    static func lost(in text: [UInt8]) -> String? {
        text.withUnsafeBufferPointer { text in
            var place = 0
            while place < text.count {
                switch text[place] {
                case UInt8(ascii: "\""):
                    place += 1
                    while place < text.count, text[place] != UInt8(ascii: "\"") {
                        place += text[place] == UInt8(ascii: "\\") ? 2 : 1
                    }
                    place += 1
                case UInt8(ascii: "-"), 0x30...0x39:
                    let start = place
                    while place < text.count, isPart(text[place]) { place += 1 }
                    let number = UnsafeBufferPointer(rebasing: text[start..<place])
                    guard isKept(number) else { return String(decoding: number, as: UTF8.self) }
                default: place += 1
                }
            }
            return nil
        }
    }

    private static func isPart(_ byte: UInt8) -> Bool {
        (0x30...0x39).contains(byte) || "+-.eE".utf8.contains(byte)
    }

    private static func isKept(_ text: UnsafeBufferPointer<UInt8>) -> Bool {
        guard let number = Decimal(text), let value = try? JSONValue(parsing: Array(text)) else { return false }
        return Array(value.description.utf8).withUnsafeBufferPointer { Decimal($0)?.order(to: number) == 0 }
    }
}
