internal import Glibc
internal import Model

/// Lines that are no JSON object as they are: where the app's settings say so, they become one.
extension EventPass {
    /// Reads the line again with its bytes replaced that are not UTF-8, or as the text of a record; else says what is wrong with it.
    @inline(never)
    mutating func repair(_ start: Int, _ next: Int) -> Verdict {
        let code = scanner.failureCode
        // Zeros are no text: a power cut left them, or a writer that will fill them.
        guard code != .blank, let settings = state?.settings, base[start] != 0 else { return unreadable(start, next) }
        let line = UnsafeBufferPointer(start: base + start, count: next - start)
        if code == .notUTF8, settings.repairsUTF8 ?? true, let verdict = readRepaired(line, settings, next) {
            return verdict
        }
        guard settings.takesText else {
            // The scanner has read the repaired line since: what is wrong is said of the line as it is.
            _ = scanner.scanLine(base, from: start, to: next)
            return unreadable(start, next)
        }
        repaired.removeAll(keepingCapacity: 1 << 16)
        var text: [UInt8] = Array("{\"message\":".utf8)
        let end = line.count - (line.last == .lineFeed ? 1 : 0)
        let trimmed = end > 0 && line[end - 1] == 0x0D ? end - 1 : end
        let content = UnsafeBufferPointer(rebasing: line[..<trimmed])
        let valid = String(decoding: content, as: UTF8.self)
        text += JSONText.quoted(valid) + [.closeBrace, .lineFeed]
        text.withUnsafeBytes { repaired.append($0) }
        counts.wrappedLines += 1
        if !content.elementsEqual(valid.utf8) { counts.repairedLines += 1 }
        return judgeRepaired(next) ?? unreadable(start, next)
    }

    /// The line with its bytes replaced, if that makes an object of it; of an event only where that was asked for.
    private mutating func readRepaired(
        _ line: UnsafeBufferPointer<UInt8>, _ settings: AppSettings, _ next: Int
    ) -> Verdict? {
        repaired.removeAll(keepingCapacity: 1 << 16)
        var valid = String(decoding: line, as: UTF8.self)
        valid.withUTF8 { repaired.append(UnsafeRawBufferPointer($0)) }
        let before = base
        if let verdict = judgeRepaired(next), isRecord || settings.repairsUTF8 == true {
            counts.repairedLines += 1
            return verdict
        }
        base = before
        return nil
    }

    private mutating func judgeRepaired(_ next: Int) -> Verdict? {
        base = UnsafePointer(repaired.start)
        guard scanner.scanLine(base, from: 0, to: repaired.count).isObject else { return nil }
        return judge(next)
    }
}
