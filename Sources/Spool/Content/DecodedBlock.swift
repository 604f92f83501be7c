internal import Model

/// The text of a block of a file in another encoding, and what has been used of both.
final class DecodedBlock {
    private let decoder: FileDecoder
    private let memory: UnsafeMutableRawBufferPointer
    /// Length of the block in the file.
    private let length: Int
    /// Length of the byte order mark, which is used up with the first bytes of text.
    private let mark: Int
    private var textLength: Int
    /// Bytes of the file that were used.
    private(set) var used = 0
    /// Bytes of the text that were used.
    private var usedText = 0

    /// - Parameters:
    ///   - block: bytes of the file.
    ///   - isBeginning: whether the file begins with the block.
    ///   - isWhole: whether the file ends with the block and grows no more.
    init(_ block: UnsafeRawBufferPointer, by decoder: FileDecoder, isBeginning: Bool, isWhole: Bool) {
        self.decoder = decoder
        length = block.count
        mark = isBeginning ? decoder.markLength(of: block) : 0
        memory = .allocate(byteCount: FileDecoder.room(for: block.count), alignment: 16)
        textLength = decoder.decode(
            UnsafeRawBufferPointer(rebasing: block[mark...]), isWhole: isWhole, into: memory)
    }

    deinit { memory.deallocate() }

    /// The text that was not used yet. Valid while the block lives.
    var text: UnsafeRawBufferPointer { UnsafeRawBufferPointer(rebasing: memory[usedText..<textLength]) }

    /// How many bytes of the file, behind those that were used, there are up to the end of the first `count`
    /// bytes of `text`.
    func fileLength(of count: Int) -> Int {
        let bytes = decoder.length(of: UnsafeRawBufferPointer(rebasing: text[..<count]))
        return min(length - used, bytes + (usedText == 0 ? mark : 0))
    }

    /// The first `count` bytes of `text` with the LF that this line lacks. It overwrites what follows.
    func sealed(_ count: Int) -> UnsafeRawBufferPointer {
        memory[usedText + count] = 0x0A
        return UnsafeRawBufferPointer(rebasing: memory[usedText...(usedText + count)])
    }

    /// Appends the LF that the last line lacks.
    func seal() {
        memory[textLength] = 0x0A
        textLength += 1
    }

    /// Marks text as used.
    ///
    /// - Returns: the bytes of the file that it stands for.
    func use(_ count: Int) -> Int {
        guard count > 0 else { return 0 }
        let bytes = fileLength(of: count)
        used += bytes
        usedText += count
        return bytes
    }

    /// Marks zeros as used, of which the block may have only the first.
    ///
    /// - Parameter bytes: their length in the file.
    func useZeros(_ bytes: Int64) {
        let zeros = Int(min(bytes, Int64(length - used))) - fileLength(of: 0)
        _ = use(min(zeros / decoder.unit, textLength - usedText))
    }
}
