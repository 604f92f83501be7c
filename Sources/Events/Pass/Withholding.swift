internal import Model

/// What tags hide, and which texts must not leave because of it.
///
/// A value may be alone on its line, without the name by which it would be recognised. So the streams are
/// remembered whose last line ended in the middle of a line, or before the value of a member.
struct Withholding {
    /// Texts that go to the quarantine because tags could not find in them what they hide.
    var texts = WithheldTexts.none
    /// Whether patterns of tags search texts: then no limit cuts a text.
    var isSearched = false
    /// Members that tags hide; nil for none.
    var paths: HiddenPaths?
    /// Name of the append file that is read; empty for drop files.
    private(set) var producer: [UInt8] = []
    /// Streams whose last line was a piece of a longer line, or ended before the value of a member. The key
    /// is the file's producer followed by the stream's name; for a journal it is the process. If tags hide
    /// something, the next line of such a stream goes to the quarantine: it may be the rest of a hidden
    /// value, without its name. At most 4,096.
    private var unfinished: [[UInt8]: End] = [:]

    /// How the last line of a stream ended.
    private enum End {
        /// In the middle of a line, which the next piece continues.
        case insideLine
        /// Before a value, which may follow after lines of white space.
        case beforeValue
    }

    /// Whether any stream is unfinished. False for most blocks: then no line is looked up.
    @inline(__always) var isExpecting: Bool { !unfinished.isEmpty }

    /// Begins the lines of a file.
    mutating func begin(_ producer: [UInt8]?) { self.producer = producer ?? [] }

    /// Whether an object is the value of a hidden member whose name ended the line before it. It has no name
    /// of its own then by which it could be hidden, so that the whole line has to stay.
    mutating func hidesValue() -> Bool { isExpecting && hidesValue(of: producer) }

    /// The same for an object of another stream than the file's.
    mutating func hidesValue(of stream: [UInt8]) -> Bool {
        unfinished.removeValue(forKey: stream) != nil && texts == .members
    }

    /// Whether a text must not leave. Notes whether it ends before a value.
    ///
    /// - Parameters:
    ///   - stream: the stream that a runtime has noted; nil for a line that is not wrapped.
    ///   - isPiece: whether the text is only a piece of a line.
    mutating func withholds(_ text: UnsafeBufferPointer<UInt8>, stream: [UInt8]?, isPiece: Bool) -> Bool {
        noteEnd(of: text, stream: stream)
        return texts.include(text, isPiece: isPiece)
    }

    /// Notes whether a line of the file ends before a value, whatever becomes of the line itself.
    ///
    /// - Parameter stream: the stream that a runtime has noted; nil for a line that is not wrapped.
    mutating func noteEnd(of text: UnsafeBufferPointer<UInt8>, stream: [UInt8]? = nil) {
        if texts.endsBeforeValue(text) {
            note(.beforeValue, of: producer + (stream ?? []))
        } else if stream == nil, isExpecting, !Withholding.isBlank(text) {
            // `notePiece` has already cleared the note of a wrapped line.
            unfinished.removeValue(forKey: producer)
        }
    }

    /// The same for a text of another stream than the file's.
    mutating func noteEnd(of text: UnsafeBufferPointer<UInt8>, ofStream stream: [UInt8]) {
        if texts.endsBeforeValue(text) {
            note(.beforeValue, of: stream)
        } else if isExpecting, !Withholding.isBlank(text) {
            unfinished.removeValue(forKey: stream)
        }
    }

    /// Notes whether a wrapped line continues in another piece. Returns whether what was read now is a piece:
    /// the beginning, the middle or the end of a longer line.
    mutating func notePiece(
        _ text: UnsafeBufferPointer<UInt8>, of stream: [UInt8], goesOn: Bool
    ) -> Bool {
        guard goesOn || isExpecting else { return false }
        let key = producer + stream
        let before = unfinished[key]
        // White space may stand between a name and its value, so it clears no note.
        if before == .beforeValue, Withholding.isBlank(text) { return true }
        guard goesOn else { return unfinished.removeValue(forKey: key) != nil }
        note(.insideLine, of: key)
        return true
    }

    /// Whether a text is only white space.
    static func isBlank(_ text: UnsafeBufferPointer<UInt8>) -> Bool { !text.contains { $0 > 0x20 } }

    /// Adds a stream to `unfinished`.
    private mutating func note(_ end: End, of key: [UInt8]) {
        // Entries of files that were deleted in the middle of a line would stay for ever: with 4,096 entries,
        // any one makes room.
        if unfinished.count >= 4096, unfinished[key] == nil {
            unfinished.remove(at: unfinished.startIndex)
        }
        unfinished[key] = end
    }
}
