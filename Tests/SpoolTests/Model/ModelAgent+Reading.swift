import EventLoops
import Frames
import Model
@testable import Spool
import TestKit

extension ModelAgent {
    // MARK: Reading

    /// Reads a piece of a file, or an archive. False: there is nothing to read.
    @discardableResult
    func read() throws -> Bool {
        for index in later.indices.reversed() where later[index].due <= now {
            makeReady(later.remove(at: index).file)
        }
        if !archives.isEmpty, random.next() % 4 == 0 || ready.isEmpty {
            try catchUp()
            if try readArchive() { return true }
        }
        guard !ready.isEmpty else { return false }
        let file = ready.remove(at: Int(random.next() % UInt64(ready.count)))
        file.isReady = false
        // What the kernel has told is taken up before files are read; here it may come late, but not to what is compared.
        if file.isSuspect { try catchUp() }
        guard streams.files[file.id] === file else { return true }
        guard let named = reach(file) else {
            displaced(file)
            file.isReady = false
            ready.removeAll { $0 === file }
            streams.vanished(file)
            leave(file)
            return true
        }
        if file.isSuspect, !resolveCopy(file, named) {
            later.append((now + settleTime, file))
            return true
        }
        readBlock(file, named)
        return true
    }

    func catchUp() throws {
        if !isPolling { try look(all: false, changes: .max) }
    }

    func readBlock(_ file: AppendFile, _ named: ModelFile) {
        if named.path == nil, file.hasName { displaced(file) }
        file.see(length: Int64(named.bytes.count))
        file.modified = Timestamp(nanoseconds: named.version)
        streams.began(file, isRotatedName: file.name.isRotatedName)
        if file.isSuspect { return makeReady(file) }
        if file.size < file.taken.offset || file.stage == .cut, !findPlace(file, named, isRewritten: false) {
            return wait(file)
        }
        guard mark(named, file.taken.offset).ends(like: file.taken) else {
            if findPlace(file, named, isRewritten: true) { makeReady(file) } else { wait(file) }
            return
        }
        if file.reached > 0 { streams.cutOff(file, from: max(file.cutTo, file.taken.offset)) }
        tellCutOffs()
        // A suspect again: a copy over an older copy.
        guard file.stage == .reading else { return makeReady(file) }
        let start = Int(file.taken.offset)
        let most = min(named.bytes.count, start + 1 + Int(random.next() % 3000))
        guard
            let end = named.bytes[start..<most].lastIndex(of: 0x0A)
                ?? named.bytes[start...].firstIndex(of: 0x0A)
        else {
            if file.committed >= file.size { streams.isRead(file) }
            return
        }
        lines += named.lines(from: start, to: end + 1)
        tell?(
            "read \(file.path.text) from \(start) to \(end + 1) of \(named.bytes.count), lines \(named.lines(from: start, to: end + 1).prefix(1))"
        )
        let fingerprint = Fingerprint(
            length: min(end + 1, Fingerprint.longest),
            hash: named.bytes.prefix(min(end + 1, Fingerprint.longest)).withUnsafeBytes { ByteHash.of($0) })
        let place = named.bytes[...end].withUnsafeBytes {
            file.taken.advanced(by: end + 1 - start, atEndOf: $0)
        }
        streams.took(file, upTo: place, fingerprint, in: &pass)
        if end + 1 < named.bytes.count { makeReady(file) }
    }

    /// Notices that a file is shorter. One whose lines end alike may look unchanged if it is filled again beyond its place unseen.
    func notice(shorter named: ModelFile) {
        if let file = streams.files[named.id], !file.isSuspect { readBlock(file, named) }
    }

    func wait(_ file: AppendFile) { later.append((now + settleTime, file)) }

    func mark(_ named: ModelFile, _ offset: Int64) -> Mark {
        let covered = Mark(offset: offset, hash: 0).covered
        let start = min(named.bytes.count, Int(offset) - covered)
        let bytes = named.bytes[start..<min(named.bytes.count, Int(offset))]
        return Mark(offset: offset, hash: bytes.withUnsafeBytes { ByteHash.of($0) })
    }

    func sight(of named: ModelFile, _ places: [Int64], isPacked: Bool) -> Sight {
        var sight = Sight()
        let size = Int64(named.bytes.count)
        for place in places {
            guard !isPacked || place <= size else {
                sight.end = Mark(offset: size, hash: 0)
                break
            }
            let (before, after) = (Int(place) - 1, Int(place))
            let endsLine =
                place >= size || named.bytes[before] == 0x0A || named.bytes[after] == 0x0A
            sight.saw(mark(named, place), endsLine: endsLine)
            if !isPacked, place >= size { sight.end = mark(named, place) }
        }
        return sight
    }

    func answer(
        _ inquiry: inout Inquiry, _ named: ModelFile, near directory: SpoolDirectory, isPacked: Bool = false
    ) -> Inquiry.Answer {
        while true {
            switch inquiry.next {
            case .beginning(let file):
                let isHidden = open[file] == nil && !file.mayHaveChanged(near: directory)
                inquiry.saw(
                    beginning: isHidden ? [] : Array(reach(file)?.bytes.prefix(Fingerprint.longest) ?? []))
            case .offsets(let offsets): inquiry.saw(sight(of: named, offsets, isPacked: isPacked))
            case .sums(_, let places):
                let sums = places.map {
                    (place: $0, sum: named.bytes[..<Int($0)].withUnsafeBytes { crc32c($0) })
                }
                inquiry.saw(sums: Dictionary(uniqueKeysWithValues: sums.map { ($0.place, $0.sum) }))
            case .end(let file):
                let other = file.taken.offset >= file.size && !file.isReady ? reach(file) : nil
                let isRead = other.map {
                    Int64($0.bytes.count) == file.length && mark($0, file.taken.offset).ends(like: file.taken)
                }
                inquiry.saw(file, isReadToItsEnd: isRead ?? false)
            case .content(let file):
                let isSame = reach(file).map { mark($0, file.taken.offset).ends(like: file.taken) }
                inquiry.saw(file, holdsWhatWasRead: isSame ?? true)
            case .answer(let answer):
                if case .later(let first?) = answer, !first.isSuspect { makeReady(first) }
                return answer
            }
        }
    }

    var isListed: Bool { directories.values.allSatisfy(\.wasListed) }

    func resolveCopy(_ file: AppendFile, _ named: ModelFile) -> Bool {
        guard isListed else { return false }
        if Int64(named.bytes.count) != file.length || file.modified != Timestamp(nanoseconds: named.version) {
            file.lastChange = now
        }
        file.see(length: Int64(named.bytes.count))
        file.modified = Timestamp(nanoseconds: named.version)
        let head = Array(named.bytes.prefix(Fingerprint.longest))
        guard var inquiry = streams.inquiry(aboutCopy: file, head: head) else { return false }
        let answer = answer(&inquiry, named, near: file.directory)
        if case .later = answer { return false }
        _ = streams.judged(file, answer, inquiry, in: &pass)
        tell?("judged \(file.path.text) of \(named.bytes.count): goes on at \(file.taken.offset)")
        return true
    }

    func findPlace(_ file: AppendFile, _ named: ModelFile, isRewritten: Bool) -> Bool {
        let head = Array(named.bytes.prefix(Fingerprint.longest))
        var inquiry = streams.inquiry(aboutChanged: file, head: head, isRewritten: isRewritten)
        let answer = answer(&inquiry, named, near: file.directory)
        defer {
            tell?(
                "changed \(file.path.text): \(named.bytes.count) bytes, goes on at \(file.taken.offset), \(file.stage)"
            )
        }
        return streams.changed(
            file, answer, inquiry, isRotatedName: file.name.isRotatedName, hasWaiting: !archives.isEmpty,
            in: &pass)
            != nil
    }

    // MARK: Archives

    func offer(_ path: String, _ named: ModelFile) {
        guard !inHand.contains(named.id), !archives.contains(where: { $0.path == path }) else { return }
        streams.remembered.see(named.id)
        if let kept = streams.remembered.kept[named.id], FileTrace(kept.state)?.doneVersion != nil {
            return streams.remembered.found(named.id, at: FileName(path), links: 1, in: &pass)
        }
        archives.append((path, now + settleTime, named.version))
    }

    func readArchive() throws -> Bool {
        guard let index = archives.firstIndex(where: { $0.due <= now }) else { return false }
        let offered = archives.remove(at: index)
        guard let named = disk.names[offered.path], let (directory, name) = place(offered.path) else {
            return true
        }
        guard offered.version == named.version else {
            offer(offered.path, named)
            return true
        }
        let asked = Stream.asked(directory.holder(0), name)
        let isKnown = streams.hasAny(of: asked)
        var start = 0
        if !isKnown || isListed {
            let head = isKnown ? Array(named.bytes.prefix(Fingerprint.longest)) : []
            var inquiry = streams.inquiry(aboutArchiveIn: directory, of: asked, head: head)
            let answer = answer(&inquiry, named, near: directory, isPacked: true)
            streams.note(answer, upTo: .max, inquiry)
            switch answer {
            case .later: return again(offered.path, named)
            case .new: removable.append(offered.path)
            case .goOn(let place, _, _):
                start = Int(place.offset)
                var trace = FileTrace()
                trace.doneVersion = 1
                let checkpoint = Checkpoint(
                    key: named.id.bytes, path: offered.path, offset: place.offset, state: trace.encoded)
                streams.remembered.keep(checkpoint)
                streams.remembered.found(named.id, at: FileName(offered.path), links: 1, in: &pass)
                pass.keep(checkpoint, of: named.id)
            }
        } else {
            return again(offered.path, named)
        }
        inHand.insert(named.id)
        tell?("read archive \(offered.path) from \(start) of \(named.bytes.count)")
        lines += named.lines(from: start)
        return true
    }

    func again(_ path: String, _ named: ModelFile) -> Bool {
        archives.append((path, now + settleTime, named.version))
        return true
    }
}
