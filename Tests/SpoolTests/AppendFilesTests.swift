import EventLoops
import Model
@testable import Spool
import TestKit
import Testing

/// The life of append files without a disk, a clock or an agent: random lives beside what is true of each
/// file.
@Suite("Append files")
struct AppendFilesTests {
    /// A file with its writer, the agent's orders for it, and what the kernel would answer.
    private final class World {
        let time = ManualTime()
        let directory = SpoolDirectory(
            path: FileName("a"), depth: 1, id: FileID(bytes: Array("a".utf8)), 0)
        var appendFiles: AppendFiles
        var pass = Pass()
        let file: AppendFile
        private var random: SplitMix64
        /// Whether the kernel answers who has the file open.
        private let hasLeases: Bool
        private var hasWriter = true
        /// Whether somebody has opened the claimed file, which breaks the file lease.
        private var isTouched = false
        private var isEnding = false
        private var mustStay = false
        /// Bytes in the file, and those of them that are whole lines.
        private var length: Int64 = 0
        private var lines: Int64 = 0
        private var checks: [BootInstant] = []
        private var looks: [BootInstant] = []
        private(set) var isGone = false
        private(set) var faults: [String] = []
        private(set) var removals = 0

        init(seed: UInt64) {
            random = SplitMix64(seed: seed)
            hasLeases = random.next() % 2 == 0
            var options = SpoolOptions(directory: "/spool")
            (options.textTime, options.settleTime, options.sealTime) = (
                .seconds(2), .seconds(1), .seconds(10)
            )
            (options.giveUpTime, options.unclosedTime) = (.seconds(60), .seconds(600))
            options.graceTime = .milliseconds(200)
            let streams = Streams([], settleTime: .seconds(1), most: .max, time: time)
            appendFiles = AppendFiles(streams, options)
            file = AppendFile(
                FileID(bytes: [1]), in: directory, name: FileName("x.jsonl"), owner: 0, size: 0,
                now: time.bootTime)
            _ = appendFiles.streams.meet(file, isRotated: false, was: .unknown)
            directory.files[file.name] = file
        }

        var now: BootInstant { time.bootTime }
        private func chance(_ count: UInt64) -> Bool { random.next() % count == 0 }
        private func fault(_ text: String) { faults.append(text) }

        private var situation: AppendFiles.Situation {
            AppendFiles.Situation(mustStay: mustStay, isReported: true)
        }

        func step() {
            guard !isGone else { return }
            switch random.next() % 10 {
            case 0...1: write()
            case 2: if chance(3) { close() }
            case 3: if chance(4) { rotate() }
            case 4: if chance(12) { delete() }
            case 5...6: read()
            case 7: commit()
            case 8: need(chance(8))
            default: advance(.milliseconds(Int64(random.next() % 1500)))
            }
        }

        /// Nothing more is written: what must go is gone after a while.
        func end() {
            isEnding = true
            need(false)
            if hasWriter { close() }
            for _ in 0..<2000 where !isGone {
                read()
                commit()
                advance(.seconds(1))
            }
            let mayStay = !hasLeases && file.hasName
            if !isGone, !mayStay {
                fault("stays: \(file.naming), \(file.stage), read to \(file.taken.offset)")
            }
            if !isGone, file.naming == .rotated, file.taken.offset < length { fault("its end is never read") }
        }

        /// The sink needs the file, or needs it no more, which the reader is told.
        private func need(_ isNeeded: Bool) {
            mustStay = isNeeded
            if !isNeeded { consider() }
        }

        private func write() {
            guard hasWriter || chance(4), file.hasName || hasWriter else { return }
            (hasWriter, isTouched) = (true, true)
            length += 10 + Int64(random.next() % 50)
            if !chance(4) { lines = length }
            appendFiles.changed(file, at: now)
            if appendFiles.saw(file, length: length, modified: time.wallTime) { makeReady() }
        }

        private func makeReady() {
            let wasReady = file.isReady
            let isQueued = appendFiles.makeReady(file, at: now, time.wallTime)
            if isQueued == wasReady { fault("queued twice, or never") }
            if appendFiles.streams.unread[file] == nil { fault("what is ready is not unread") }
        }

        private func close() {
            hasWriter = false
            if appendFiles.closed(file, at: now) { makeReady() }
            consider()
        }

        private func rotate() {
            guard file.hasName, file.stage == .reading else { return }
            let name = FileName("x.jsonl.\(random.next() % 9 + 1)")
            appendFiles.streams.move(file, to: directory, name, isRotated: true, isOwn: false)
            makeReady()
        }

        private func delete() {
            guard appendFiles.displace(file) else { return }
            makeReady()
            consider()
        }

        private func read() {
            guard file.isReady, !isGone else { return }
            guard appendFiles.beginTurn(of: file, at: now) else { return fault("a known file is unknown") }
            _ = appendFiles.saw(file, length: length, modified: time.wallTime)
            let end = file.isSealed ? length : lines
            if end > file.taken.offset {
                appendFiles.streams.took(file, upTo: Mark(offset: end, hash: 0), nil, in: &pass)
            }
            appendFiles.endTurn(of: file)
            consider()
        }

        private func commit() {
            var closed = pass
            pass = Pass()
            for covered in appendFiles.streams.close(&closed).covered where appendFiles.covered(covered) {
                consider()
            }
        }

        private func consider() {
            let planned = file.checkAt
            let order = appendFiles.consider(file, situation, at: now)
            switch order {
            case .nothing: break
            case .check(let due):
                if let planned, due >= planned { fault("a check is put off") }
            default: fault("a step is taken while something else goes on: \(order)")
            }
            carryOut(order)
        }

        private func advance(_ time: Duration) {
            self.time.advance(by: time)
            for due in checks where due <= now && !isGone {
                carryOut(appendFiles.due(file, situation, at: now))
                _ = due
            }
            checks.removeAll { $0 <= now }
            for due in looks where due <= now && !isGone {
                look()
                _ = due
            }
            looks.removeAll { $0 <= now }
        }

        private func carryOut(_ order: AppendFiles.Order) {
            switch order {
            case .nothing: break
            case .check(let due): checks.append(max(due, now + .nanoseconds(1)))
            case .read: makeReady()
            case .readUnclosed(let bytes):
                if hasLeases || bytes <= 0 { fault("a line counts as unclosed") }
                makeReady()
            case .askForWriters(var facts):
                facts.writers = hasLeases ? (hasWriter ? .present : .absent) : .unknown
                facts.hasChanged = length != file.length
                carryOut(appendFiles.answered(file, facts, at: now))
            case .claim: claim()
            case .letGo:
                if file.hasName { fault("a file with a name is forgotten") }
                letGo()
            }
        }

        private func claim() {
            if hasWriter || !hasLeases { fault("a file is claimed that may have a writer") }
            if mustStay || file.committed < length { fault("a file is claimed that is needed") }
            isTouched = false
            appendFiles.beginLeaving(file, as: file.name.claim(random.next()), at: now)
            looks.append(now + appendFiles.beginGrace(file, at: now))
        }

        private func look() {
            guard file.stage == .leaving else { return }
            if !isEnding, chance(10) { (hasWriter, isTouched, length) = (true, true, length + 7) }
            switch appendFiles.leavingStep(file, isUntouched: !isTouched && file.hasName, at: now) {
            case .stay:
                if !isTouched, file.hasName { fault("an untouched file stays") }
                appendFiles.stay(file, as: chance(2) && file.hasName ? file.name.claimed : nil, at: now)
                makeReady()
            case .lookAgain(let wait):
                if wait > .milliseconds(50) { fault("a writer waits for \(wait)") }
                looks.append(now + wait)
            case .remove:
                if isTouched || file.committed < length { fault("a file is removed that is needed") }
                removals += 1
                letGo()
            }
        }

        private func letGo() {
            if file.committed < length { fault("\(length - file.committed) bytes are lost") }
            appendFiles.letGo(file, hasWaiting: false, in: &pass)
            isGone = true
            if appendFiles.knows(file) || appendFiles.streams.unread[file] != nil {
                fault("something is left of it")
            }
        }
    }

    @Test("no life of a file ends before its lines are queued, and each that can end does")
    func lives() {
        let seed = Seeds.one(1)
        var (gone, removals) = (0, 0)
        for number in 0..<2000 {
            let world = World(seed: seed &+ UInt64(number))
            for _ in 0..<200 { world.step() }
            world.end()
            gone += world.isGone ? 1 : 0
            removals += world.removals
            guard world.faults.isEmpty else {
                Issue.record("\(world.faults.prefix(3)); \(Seeds.again(seed &+ UInt64(number)))")
                return
            }
        }
        // Otherwise the lives show nothing.
        #expect(gone > 500 && removals > 100)
    }

    @Test("a claimed file that loses its name stays nameless when a writer has come")
    func namelessClaim() {
        let world = World(seed: 1)
        let file = world.file
        world.appendFiles.beginLeaving(file, as: file.name.claim(7), at: world.now)
        #expect(world.appendFiles.displace(file) == true)
        world.appendFiles.stay(file, as: nil, at: world.now)
        #expect(file.naming == .none && world.appendFiles.streams.nameless[file.id] === file)
        #expect(world.appendFiles.counts.rotations == 1)
    }
}
