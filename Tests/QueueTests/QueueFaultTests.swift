import EventLoops
import Glibc
import Logs
import Model
import TestKit
import Testing

@testable import Queue

@Suite("Queue faults")
struct QueueFaultTests {
    private func fill(_ store: QueueStore, _ maker: inout ChunkMaker, _ chunks: Int, size: Int = 80)
        async throws
    {
        for _ in 0..<chunks { _ = try await store.store(maker.commit(50, size: size, full: true)) }
    }

    private func drain(_ store: QueueStore) async throws -> [Int] {
        var taken: [Int] = []
        while let batch = try await store.leaseNext(request()) {
            taken += numbers(batch)
            _ = try await store.settle(.acknowledged(batch.header))
        }
        #expect(await eventually { store.snapshot.lane("main", .normal)?.ledger.queued == 0 })
        #expect(store.snapshot.lanes.allSatisfy { $0.ledger.balances })
        return taken
    }

    private func damage(_ path: String, at offset: Int, _ count: Int) throws {
        let file = try Descriptor(checking: open(path, O_WRONLY), "open")
        let garbage = [UInt8](repeating: 0xA5, count: count)
        #expect(pwrite(file.raw, garbage, count, off_t(offset)) == count)
    }

    private func aside(_ fixture: QueueFixture) -> [String] {
        guard let directory = opendir("\(fixture.directory.path)/state") else { return [] }
        defer { closedir(directory) }
        var names: [String] = []
        while let entry = readdir(directory) {
            let name = withUnsafePointer(to: &entry.pointee.d_name) { pointer in
                pointer.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            }
            if name.contains("damaged"), !name.hasSuffix("-wal") { names.append(name) }
        }
        return names
    }

    @Test("a damaged frame is counted as lost for all its destinations, and the other events are sent")
    func fault07_badFrame() async throws {
        let fixture = try QueueFixture()
        var maker = ChunkMaker()
        var store = try fixture.open { $0.destinations = ["main", "other"] }
        try await fill(store, &maker, 1)
        _ = try await store.store(maker.commit(50, to: ["main", "other"], full: true))
        for _ in 0..<3 { _ = try await store.store(maker.commit(5)) }
        await store.close()
        let database = try Database(path: "\(fixture.options.stateDirectory)/queue.sqlite", vfs: nil)
        try database.execute("UPDATE chunk SET frame = zeroblob(length(frame)) WHERE id IN (2, 4)")
        database.close()
        store = try fixture.open { $0.destinations = ["main", "other"] }
        #expect(try await drain(store) == Array(0..<50) + Array(100..<105) + Array(110..<115))
        #expect(store.snapshot.lane("main", .normal)?.ledger.lost == 55)
        #expect(store.snapshot.lane("other", .normal)?.ledger.lost == 50)
        #expect(store.snapshot.storedBytes == 0 && store.snapshot.health.recoveries == 0)
        await store.close()
    }

    @Test("damage in a batch that was attempted loses one chunk; its other events are sent in another batch")
    func fault07_damagedBatch() async throws {
        let fixture = try QueueFixture()
        var maker = ChunkMaker()
        var store = try fixture.open()
        for _ in 0..<3 { _ = try await store.store(maker.commit(5)) }
        let batch = try #require(try await store.leaseNext(request()))
        await store.close()
        let database = try Database(path: "\(fixture.options.stateDirectory)/queue.sqlite", vfs: nil)
        try database.execute("UPDATE chunk SET frame = zeroblob(length(frame)) WHERE id = 2")
        database.close()
        store = try fixture.open()
        #expect(try await store.lease(batch.header.id, for: "main") == nil)
        #expect(store.snapshot.lane("main", .normal)?.summary.freeBatches == 0)
        #expect(try await drain(store) == Array(0..<5) + Array(10..<15))
        #expect(store.snapshot.lane("main", .normal)?.ledger.lost == 5)
        await store.close()
    }

    @Test("events of a damaged batch that wait again are found, although later batches were formed meanwhile")
    func fault07_damagedBatchBehindOthers() async throws {
        let fixture = try QueueFixture()
        var maker = ChunkMaker()
        var store = try fixture.open()
        for _ in 0..<3 { _ = try await store.store(maker.commit(5)) }
        let batch = try #require(try await store.leaseNext(request()))
        await store.close()
        let database = try Database(path: "\(fixture.options.stateDirectory)/queue.sqlite", vfs: nil)
        try database.execute("UPDATE chunk SET frame = zeroblob(length(frame)) WHERE id = 2")
        database.close()
        store = try fixture.open()
        _ = try await store.store(maker.commit(50, full: true))
        var next = request()
        next.except = [batch.header.id]
        let later = try #require(try await store.leaseNext(next))
        try await store.acknowledge([later.header.id])
        #expect(try await store.lease(batch.header.id, for: "main") == nil)
        #expect(try await drain(store) == Array(0..<5) + Array(10..<15))
        await store.close()
    }

    @Test(
        "damage to the owners of events is found when they are read; the events are saved and belong to no app"
    )
    func fault07_damagedHolders() async throws {
        let fixture = try QueueFixture()
        var maker = ChunkMaker()
        var store = try fixture.open()
        var commit = Commit()
        commit.chunks = [maker.chunk(of: [("A", 2)], full: true)]
        commit.read = 2
        _ = try await store.store(commit)
        await store.close()
        let path = "\(fixture.options.stateDirectory)/queue.sqlite"
        let database = try Database(path: path, vfs: nil)
        let page = try #require(
            try database.integer("SELECT rootpage FROM sqlite_schema WHERE name = 'holding'"))
        database.close()
        try damage(path, at: (page - 1) * 4_096, 4_096)
        store = try fixture.open()
        let batch = try #require(try await store.leaseNext(request(events: 2)))
        #expect(store.snapshot.health.recoveries == 0)
        #expect(await store.apps(of: batch.header.id) == ["", ""])
        #expect(store.snapshot.health.recoveries == 1)
        try await store.acknowledge([batch.header.id])
        #expect(try await drain(store) == [])
        await store.close()
    }

    @Test("a file with a damaged header is set aside; the events on its other pages continue in a new file")
    func fault07_noDatabase() async throws {
        let fixture = try QueueFixture()
        var maker = ChunkMaker()
        var store = try fixture.open()
        try await fill(store, &maker, 3)
        await store.close()
        try damage("\(fixture.options.stateDirectory)/queue.sqlite", at: 0, 200)
        store = try fixture.open()
        #expect(store.snapshot.health.recoveries == 1)
        #expect(aside(fixture).count == 1)
        #expect(fixture.log.messages.contains { $0.text == "queue database replaced" })
        _ = try await store.store(maker.commit(50, full: true))
        #expect(try await drain(store) == Array(0..<200))
        await store.close()
    }

    @Test(
        "damage in the middle: readable rows are salvaged, the others counted as lost",
        arguments: 0..<12)
    func fault07_damagedPages(place: Int) async throws {
        let fixture = try QueueFixture()
        var maker = ChunkMaker()
        var store = try fixture.open()
        var commit = maker.commit(50, full: true)
        commit.progress.checkpoints = [Checkpoint(key: [7], path: "a", offset: 5, state: [])]
        _ = try await store.store(commit)
        try await fill(store, &maker, 199)
        await store.close()
        let path = "\(fixture.options.stateDirectory)/queue.sqlite"
        var information = stat()
        #expect(stat(path, &information) == 0)
        let pages = Int(information.st_size) / 4_096
        try damage(path, at: (1 + (pages - 3) * place / 12) * 4_096, 3 * 4_096)
        store = try fixture.open()
        let taken = try await drain(store)
        #expect(Set(taken).count == taken.count)
        let ledger = try #require(store.snapshot.lane("main", .normal)?.ledger)
        #expect(ledger.balances)
        #expect(ledger.acknowledged == taken.count)
        if ledger.accepted == 10_000 { #expect(ledger.lost == 10_000 - taken.count) }
        _ = try await store.store(maker.commit(50, full: true))
        #expect(try await drain(store).count == 50)
        #expect(store.snapshot.health.failure == nil)
        await store.close()
    }

    @Test("if the file is damaged at run time, the agent continues with what is readable")
    func fault07_atRunTime() async throws {
        let fixture = try QueueFixture()
        var maker = ChunkMaker()
        var store = try fixture.open()
        for _ in 0..<20 { _ = try await store.store(maker.commit(5)) }
        try await fill(store, &maker, 2_000)
        await store.close()
        store = try fixture.open()
        // Formed of small chunks: one in flight, one given back; then one that is a chunk as it is stored.
        let first = try #require(try await store.leaseNext(request()))
        let free = try #require(try await store.leaseNext(request()))
        let full = try #require(try await store.leaseNext(request()))
        await store.release(free.header.id)
        // More than the page cache holds, so that the pages are read again.
        try damage("\(fixture.options.stateDirectory)/queue.sqlite", at: 400 * 4_096, 300 * 4_096)
        var taken = numbers(first) + numbers(full)
        var others = request()
        others.except = [free.header.id]
        while store.snapshot.health.recoveries == 0 {
            guard let batch = try await store.leaseNext(others) else { continue }
            taken += numbers(batch)
            _ = try await store.settle(.acknowledged(batch.header))
        }
        _ = try await store.settle(.acknowledged(first.header))
        _ = try await store.settle(.acknowledged(full.header))
        let again = try #require(try await store.lease(free.header.id, for: "main"))
        #expect(numbers(again) == numbers(free) && numbers(free) == Array(50..<100))
        taken += numbers(again)
        _ = try await store.settle(.acknowledged(again.header))
        taken += try await drain(store)
        #expect(Set(taken).count == taken.count)
        let ledger = try #require(store.snapshot.lane("main", .normal)?.ledger)
        #expect(ledger.accepted == 100_100 && ledger.lost == 100_100 - taken.count && taken.count > 50_000)
        #expect(aside(fixture).count == 1)
        await store.close()
    }

    @Test("a damaged row of one destination does not affect batches in flight to others")
    func fault07_damagedDestination() async throws {
        let fixture = try QueueFixture()
        let names: [DestinationName] = ["first", "second", "third"]
        var maker = ChunkMaker()
        var store = try fixture.open { $0.destinations = names }
        func wish(_ name: DestinationName) -> LeaseRequest {
            LeaseRequest(destination: name, priority: .normal, maxEvents: 50, maxBytes: 1 << 20)
        }
        for _ in 0..<400 { _ = try await store.store(maker.commit(50, to: names, size: 400, full: true)) }
        // The first lease writes what a destination takes; from now on its row stays as it is.
        for name in names {
            await store.release(try #require(try await store.leaseNext(wish(name))).header.id)
        }
        await store.close()
        let path = "\(fixture.options.stateDirectory)/queue.sqlite"
        store = try fixture.open { $0.destinations = names }
        try damageFirstRow(of: "destination", path)
        let second = try #require(try await store.leaseNext(wish("second")))
        let third = try #require(try await store.leaseNext(wish("third")))
        // The way to the next page of the frame that the line is in the middle of.
        try damage(path, at: try #require(try offset(of: "\n15030 ", in: path)) / 4_096 * 4_096, 4)
        var taken = numbers(second)
        while store.snapshot.health.recoveries == 0 {
            guard let batch = try await store.leaseNext(wish("second")) else { continue }
            taken += numbers(batch)
            _ = try await store.settle(.acknowledged(batch.header))
        }
        _ = try await store.settle(.acknowledged(second.header))
        _ = try await store.settle(.acknowledged(third.header))
        while let batch = try await store.leaseNext(wish("second")) {
            taken += numbers(batch)
            _ = try await store.settle(.acknowledged(batch.header))
        }
        #expect(await eventually { store.snapshot.lane("second", .normal)?.ledger.queued == 0 })
        #expect(taken.sorted() == Array(0..<15_000) + Array(15_050..<20_000))
        #expect(store.snapshot.lanes.allSatisfy { $0.ledger.balances })
        #expect(store.snapshot.lane("second", .normal)?.ledger.acknowledged == taken.count)
        #expect(store.snapshot.lane("third", .normal)?.ledger.acknowledged == 50)
        await store.close()
    }

    private func offset(of text: String, in path: String) throws -> Int? {
        let file = try Descriptor(checking: open(path, O_RDONLY), "open")
        var bytes = [UInt8](repeating: 0, count: Int(lseek(file.raw, 0, SEEK_END)))
        #expect(pread(file.raw, &bytes, bytes.count, 0) == bytes.count)
        let wanted = Array(text.utf8)
        return bytes.withUnsafeBytes { bytes in
            var start = 0
            while let base = bytes.baseAddress, start + wanted.count <= bytes.count,
                let found = memchr(base + start, Int32(wanted[0]), bytes.count - start - wanted.count)
            {
                if memcmp(found, wanted, wanted.count) == 0 { return UnsafeRawPointer(found) - base }
                start = UnsafeRawPointer(found) - base + 1
            }
            return nil
        }
    }

    /// Makes the first row of a small table unreadable, and leaves the others.
    private func damageFirstRow(of table: String, _ path: String) throws {
        let database = try Database(path: path, vfs: nil)
        let page = try #require(
            try database.integer("SELECT rootpage FROM sqlite_schema WHERE name = '\(table)'"))
        database.close()
        let file = try Descriptor(checking: open(path, O_RDONLY), "open")
        var start: [UInt8] = [0, 0]
        // The array of cells stands behind the page's head, in the order of their keys.
        #expect(pread(file.raw, &start, 2, off_t((page - 1) * 4_096 + 8)) == 2)
        let cell = Int(start[0]) << 8 | Int(start[1])
        // The length of its record: far more than there is.
        try damage(path, at: (page - 1) * 4_096 + cell, 1)
    }

    @Test(
        "if the WAL is removed or replaced, everything stored before and after survives a kill",
        arguments: [true, false])
    func removedWAL(isReplaced: Bool) async throws {
        let (fixture, after) = (try QueueFixture(), try QueueFixture())
        let path = "\(fixture.options.stateDirectory)/queue.sqlite"
        var maker = ChunkMaker()
        let store = try fixture.open()
        _ = try await store.store(maker.commit(50, full: true))
        let leased = try #require(try await store.leaseNext(request()))
        _ = try await store.store(maker.commit(50, full: true))
        #expect(unlink(path + "-wal") == 0)
        if isReplaced { try WholeFile.replace(path + "-wal", with: [1, 2, 3], mode: 0o600) }
        for _ in 0..<3 { _ = try await store.store(maker.commit(50, full: true)) }
        #expect(fixture.log.messages.count { $0.text.contains("WAL was removed or replaced") } == 1)
        #expect(store.snapshot.health.recoveries == 0 && store.snapshot.health.failures.isEmpty)
        // What a kill leaves.
        #expect(mkdir(after.options.stateDirectory, 0o700) == 0)
        for name in ["", "-wal"] {
            let bytes = try WholeFile.bytes(of: path + name, atMost: 64 << 20) ?? []
            try WholeFile.replace(
                "\(after.options.stateDirectory)/queue.sqlite\(name)", with: bytes, mode: 0o600)
        }
        _ = try await store.settle(.acknowledged(leased.header))
        await store.close()
        let again = try after.open()
        #expect(again.snapshot.health.recoveries == 0)
        #expect(again.snapshot.lane("main", .normal)?.ledger.queued == 250)
        #expect(try await again.lease(leased.header.id, for: "main").map(numbers) == Array(0..<50))
        await again.close()
    }

    @Test("if the WAL is removed while a program reads an older state, storing stops until it ends")
    func removedWALWithReader() async throws {
        let fixture = try QueueFixture()
        let path = "\(fixture.options.stateDirectory)/queue.sqlite"
        var maker = ChunkMaker()
        let store = try fixture.open()
        _ = try await store.store(maker.commit(50, full: true))
        let reader = try Database(path: path, vfs: nil)
        try reader.execute("BEGIN")
        _ = try reader.integer("SELECT count(*) FROM chunk")
        _ = try await store.store(maker.commit(50, full: true))
        #expect(unlink(path + "-wal") == 0)
        #expect(try await store.store(maker.commit(50, full: true)) == .wait(.outOfReach))
        #expect(
            store.snapshot.accepting == .nothing(.outOfReach)
                && store.snapshot.health.failure?.message.contains("-wal") == true)
        reader.close()
        #expect(await eventually { store.snapshot.accepting == .all })
        _ = try await store.store(maker.commit(50, full: true))
        #expect(
            store.snapshot.lane("main", .normal)?.ledger.queued == 150
                && store.snapshot.health.recoveries == 0)
        await store.close()
    }

    @Test("a database of a newer version, or of another program, is refused and left unchanged")
    func unknownDatabasesAreRefused() async throws {
        let fixture = try QueueFixture()
        let store = try fixture.open()
        await store.close()
        let path = "\(fixture.options.stateDirectory)/queue.sqlite"
        var database = try Database(path: path, vfs: nil)
        try database.execute("PRAGMA user_version = 99")
        database.close()
        let newer = #expect(throws: QueueError.self) { _ = try fixture.open() }
        #expect(newer?.code == .newerSchema && newer?.message.contains("99") == true)
        database = try Database(path: path, vfs: nil)
        try database.execute("PRAGMA user_version = \(Schema.version); PRAGMA application_id = 77")
        database.close()
        let foreign = #expect(throws: QueueError.self) { _ = try fixture.open() }
        #expect(foreign?.code == .foreign)
        #expect(aside(fixture).isEmpty)
    }

    @Test("file and WAL stay below 1.5 times the bounds plus 4 MiB, even if a reader pins the WAL")
    func fileStaysBounded() async throws {
        let fixture = try QueueFixture()
        var maker = ChunkMaker()
        let store = try fixture.open {
            $0.maxSize = 1 << 20
            $0.durability = .crash
        }
        let path = "\(fixture.options.stateDirectory)/queue.sqlite"
        let bound = (3 << 20) * 3 / 2 + (4 << 20)
        func size() -> Int {
            [path, path + "-wal"].reduce(0) { sum, name in
                var information = stat()
                return stat(name, &information) == 0 ? sum + Int(information.st_size) : sum
            }
        }
        func work(_ rounds: Int) async throws {
            for _ in 0..<rounds {
                let commit = maker.commit(50, size: 100, full: true)
                guard case .stored = try await store.store(commit) else { break }
                if let batch = try await store.leaseNext(request()) {
                    _ = try await store.settle(.acknowledged(batch.header))
                }
            }
        }
        try await fill(store, &maker, 20)
        try await work(2_000)
        #expect(size() <= bound)
        let reader = try Database(path: path, vfs: nil, readOnly: true)
        try reader.execute("BEGIN")
        #expect(try reader.integer("SELECT count(*) FROM chunk") != nil)
        try await work(5_000)
        #expect(store.snapshot.accepting == .nothing(.walPinned))
        #expect(size() <= bound)
        // What is queued can still be sent.
        #expect(try await store.leaseNext(request()) != nil)
        reader.close()
        #expect(await eventually { store.snapshot.accepting == .all })
        #expect(try await store.store(maker.commit(50, size: 100, full: true)) == .stored(refused: 0))
        await store.close()
    }
}

@Suite("Queue whose file is removed")
struct QueueMovedTests {
    @Test("a removed database stores nothing and sends what it has; when it is put back, storing continues")
    func takenAway() async throws {
        let fixture = try QueueFixture()
        var maker = ChunkMaker()
        let store = try fixture.open()
        for _ in 0..<10 { _ = try await store.store(maker.commit(50, size: 100, full: true)) }
        let path = "\(fixture.options.stateDirectory)/queue.sqlite"
        try #require(rename(path, path + ".mine") == 0)
        #expect(try await store.store(maker.commit(50, size: 100, full: true)) == .wait(.outOfReach))
        #expect(store.snapshot.accepting == .nothing(.outOfReach))
        #expect(store.snapshot.health.failure?.message.contains("\(path) was removed or replaced") == true)
        // Another file in its place is none.
        close(open(path, O_WRONLY | O_CREAT, 0o600))
        #expect(try await store.store(maker.commit(50, size: 100, full: true)) == .wait(.outOfReach))
        // What is queued can still be sent.
        let batch = try #require(try await store.leaseNext(request()))
        _ = try await store.settle(.acknowledged(batch.header))
        #expect(
            await eventually {
                store.snapshot.lane("main", .normal)?.ledger.acknowledged == batch.header.events
            })
        try #require(rename(path + ".mine", path) == 0)
        #expect(await eventually { store.snapshot.accepting == .all && store.snapshot.health.failure == nil })
        #expect(try await store.store(maker.commit(50, size: 100, full: true)) == .stored(refused: 0))
        #expect(fixture.log.messages.count { $0.text == "queue cannot be written" } == 1)
        await store.close()
    }
}

extension QueueMovedTests {
    @Test("an inaccessible state directory is reported as such; when it is accessible again, all continues")
    func closedOff() async throws {
        let fixture = try QueueFixture()
        var maker = ChunkMaker()
        let store = try fixture.open()
        for _ in 0..<10 { _ = try await store.store(maker.commit(50, size: 100, full: true)) }
        let directory = fixture.options.stateDirectory
        try #require(rename(directory, directory + ".mine") == 0)
        // To root no mode closes a directory; a file in its place does.
        close(open(directory, O_WRONLY | O_CREAT, 0o600))
        #expect(try await store.store(maker.commit(50, size: 100, full: true)) == .wait(.outOfReach))
        let message = try #require(store.snapshot.health.failure?.message)
        #expect(
            message
                == "\(directory)/queue.sqlite cannot be inspected: Not a directory; `spoolship check` says what to do"
        )
        let batch = try #require(try await store.leaseNext(request()))
        _ = try await store.settle(.acknowledged(batch.header))
        #expect(
            await eventually {
                store.snapshot.lane("main", .normal)?.ledger.acknowledged == batch.header.events
            })
        try #require(unlink(directory) == 0 && rename(directory + ".mine", directory) == 0)
        #expect(await eventually { store.snapshot.accepting == .all && store.snapshot.health.failure == nil })
        #expect(try await store.store(maker.commit(50, size: 100, full: true)) == .stored(refused: 0))
        await store.close()
    }
}

@Suite("Queue on a full disk", .enabled(if: geteuid() == 0, "mounting a small file system takes root"))
struct QueueFullDiskTests {
    @Test(
        "on a full disk nothing is lost, deleting works, and storing resumes by itself, on a small disk too",
        arguments: [10, 256])
    func fault08_fullDisk(queueMebibytes: Int) async throws {
        let fixture = try QueueFixture()
        let mountPoint = fixture.directory.path
        guard mount("tmpfs", mountPoint, "tmpfs", 0, "size=16m") == 0 else {
            // A container without the capability: the rest cannot be tried there.
            return
        }
        defer { umount2(mountPoint, 2) }
        var maker = ChunkMaker()
        let store = try fixture.open { $0.maxSize = queueMebibytes << 20 }
        for _ in 0..<20 { _ = try await store.store(maker.commit(50, size: 100, full: true)) }
        // Something else fills the disk.
        let filler = "\(mountPoint)/filler"
        do {
            let file = try Descriptor(checking: open(filler, O_WRONLY | O_CREAT, 0o600), "open")
            let block = [UInt8](repeating: 1, count: 4_096)
            while write(file.raw, block, block.count) > 0 {}
        }
        var stored = 20
        while case .stored = try await store.store(maker.commit(50, size: 100, full: true)) { stored += 1 }
        #expect(store.snapshot.accepting == .nothing(.diskFull))
        #expect(store.snapshot.health.failure?.code == .diskFull)
        #expect((store.snapshot.health.failures[.diskFull] ?? 0) >= 1)
        var taken: [Int] = []
        while let batch = try await store.leaseNext(request()) {
            taken += numbers(batch)
            _ = try await store.settle(.acknowledged(batch.header))
        }
        #expect(taken == Array(0..<stored * 50))
        #expect(await eventually { store.snapshot.storedBytes == 0 })
        #expect(store.snapshot.accepting == .nothing(.diskFull))
        unlink(filler)
        #expect(await eventually { store.snapshot.accepting == .all })
        #expect(store.snapshot.health.failure == nil)
        #expect(await store.ballast.isWhole)
        #expect(try await store.store(maker.commit(50, size: 100, full: true)) == .stored(refused: 0))
        #expect(store.snapshot.lanes.allSatisfy { $0.ledger.balances })
        await store.close()
    }
}
