import EventLoops
import Frames
import Glibc
import Logs
import Model
import Spool
import TestKit
import Testing

@Suite("Files that are not opened", .timeLimit(.minutes(5)))
struct SecurityTests {
    @Test("links, FIFOs and sockets are refused and counted, whatever they lead to")
    func fault26_linksAndSpecialFilesAreRefused() async throws {
        let spool = try SpoolHarness()
        let secret = try TemporaryDirectory()
        let file = open("\(secret.path)/secret.jsonl", O_WRONLY | O_CREAT, 0o600)
        write(file, "secret\n", 7)
        close(file)
        symlink("\(secret.path)/secret.jsonl", "\(spool.path)/link.jsonl")
        symlink("\(secret.path)/secret.jsonl", "\(spool.path)/link.json")
        symlink(secret.path, "\(spool.path)/folder")
        link("\(secret.path)/secret.jsonl", "\(spool.path)/hard.jsonl")
        link("\(secret.path)/secret.jsonl", "\(spool.path)/hard.json")
        mkfifo("\(spool.path)/fifo.jsonl", 0o660)
        mkfifo("\(spool.path)/fifo.json", 0o660)
        let sockets = try ["socket.jsonl", "socket.json"].map { try socket(at: "\(spool.path)/\($0)") }
        defer { for socket in sockets { close(socket) } }
        spool.write("good\n", to: "good.jsonl")
        let reader = try await spool.start()
        await spool.until("all are refused") {
            let refused = reader.figures.refused
            return refused[.symbolicLink] == 3 && refused[.hardLink] == 2 && refused[.notRegular] == 4
        }
        for name in ["fifo.json", "fifo.jsonl", "socket.json", "socket.jsonl"] {
            #expect(
                spool.log.messages.contains {
                    $0.text == "file refused" && "\($0.fields)".contains(name)
                        && "\($0.fields)".contains("not_regular")
                })
        }
        #expect(spool.queue.lines == ["good"])
        // A link that replaces a file that is known.
        spool.remove("good.jsonl")
        symlink("\(secret.path)/secret.jsonl", "\(spool.path)/good.jsonl")
        await spool.until("it is refused too") { reader.figures.refused[.symbolicLink] == 4 }
        #expect(spool.queue.lines == ["good"])
        await reader.stop()
    }

    /// A Unix socket that listens.
    private func socket(at path: String) throws -> Int32 {
        let raw = Glibc.socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
        try #require(raw >= 0)
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8.prefix(107)) }
        let result = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(raw, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
        try #require(result == 0 && listen(raw, 1) == 0)
        return raw
    }

    @Test("a directory replaced by a link is not followed")
    func fault26_replacedDirectoriesAreNotFollowed() async throws {
        let spool = try SpoolHarness()
        let secret = try TemporaryDirectory()
        let file = open("\(secret.path)/x.jsonl", O_WRONLY | O_CREAT, 0o600)
        write(file, "secret\n", 7)
        close(file)
        spool.makeDirectory("app")
        spool.write("1\n", to: "app/y.jsonl")
        let reader = try await spool.start()
        await spool.untilLines(["1"])
        spool.rename("app", to: ".gone")
        symlink(secret.path, "\(spool.path)/app")
        spool.write("2\n", to: "z.jsonl")
        await spool.untilLines(["1", "2"])
        await spool.pause(.milliseconds(100))
        #expect(spool.queue.lines == ["1", "2"])
        await reader.stop()
    }

    @Test("a hidden directory that appears is not entered until it has a plain name")
    func hiddenDirectoriesAreNotEntered() async throws {
        let spool = try SpoolHarness()
        let reader = try await spool.start()
        spool.makeDirectory(".unfinished")
        spool.write("hidden\n", to: ".unfinished/x.jsonl")
        spool.write("1\n", to: "y.jsonl")
        await spool.untilLines(["1"])
        #expect(reader.figures.directories == 1)
        spool.rename(".unfinished", to: "app")
        await spool.untilLines(["1", "hidden"])
        #expect(reader.figures.directories == 2 && reader.figures.complaints.isEmpty)
        await reader.stop()
    }

    @Test("a file published by link and unlink is read, although it has two names for a moment")
    func publishingByLinkWorks() async throws {
        let spool = try SpoolHarness()
        let reader = try await spool.start()
        spool.write("{\"n\":1}", to: ".one")
        link("\(spool.path)/.one", "\(spool.path)/one.json")
        usleep(50_000)
        spool.remove(".one")
        await spool.untilLines(["{\"n\":1}"])
        // One that takes its time is refused first.
        spool.write("{\"n\":2}", to: ".two")
        link("\(spool.path)/.two", "\(spool.path)/two.json")
        await spool.until("it is refused") { reader.figures.refused[.hardLink] != nil }
        spool.remove(".two")
        await spool.untilLines(["{\"n\":1}", "{\"n\":2}"])
        await reader.stop()
    }

    @Test("an unreadable file is reported once with its owner, and read when that is possible")
    func unreadableFilesAreTold() async throws {
        let spool = try SpoolHarness()
        chmod(spool.path, 0o777)
        // As a user without root's way around permissions.
        spool.loop.post { #expect(ThreadRights.giveUp()) }
        spool.write("1\n", to: "x.jsonl")
        chmod("\(spool.path)/x.jsonl", 0o600)
        spool.write("{\"n\":2}", to: ".y")
        chmod("\(spool.path)/.y", 0o600)
        spool.rename(".y", to: "y.json")
        let reader = try await spool.start()
        await spool.until("both are told") { reader.figures.inaccessible == 2 }
        let complaint = try #require(reader.figures.complaints.first { $0.path == "x.jsonl" })
        #expect(complaint.owner == getuid() && complaint.ownerName == "root")
        #expect(complaint.advice.contains("chmod"))
        spool.append("1b\n", to: "x.jsonl")
        await spool.pause(.milliseconds(100))
        #expect(spool.log.messages.filter { $0.text == "cannot access" }.count == 2)
        chmod("\(spool.path)/x.jsonl", 0o644)
        chmod("\(spool.path)/y.json", 0o644)
        await spool.untilLines(["1", "1b", "{\"n\":2}"])
        await spool.until("nothing is left to mend") { reader.figures.inaccessible == 0 }
        await reader.stop()
    }

    @Test("a drop file that cannot be removed is reported with its owner and left, until it can be")
    func filesThatMayNotBeRemovedAreTold() async throws {
        let spool = try SpoolHarness()
        chmod(spool.path, 0o755)
        spool.loop.post { #expect(ThreadRights.giveUp()) }
        spool.write("{\"n\":1}", to: ".y")
        chmod("\(spool.path)/.y", 0o644)
        spool.rename(".y", to: "y.json")
        let reader = try await spool.start()
        await spool.until("it is told") { reader.figures.inaccessible == 1 }
        let complaint = try #require(reader.figures.complaints.first)
        #expect(complaint.path == "y.json" && complaint.ownerName == "root")
        #expect(complaint.advice.contains("may not rename and remove it"))
        // What cannot be claimed is not read: it would be read again for ever.
        #expect(spool.queue.lines.isEmpty && spool.names() == ["y.json"])
        chmod(spool.path, 0o777)
        chmod("\(spool.path)/y.json", 0o664)
        await spool.untilLines(["{\"n\":1}"])
        await spool.until("it goes") { spool.names().isEmpty && reader.figures.inaccessible == 0 }
        await reader.stop()
    }

    @Test("a directory without search permission is reported once, and read when that is possible")
    func unreadableDirectoriesAreTold() async throws {
        let spool = try SpoolHarness()
        chmod(spool.path, 0o777)
        spool.loop.post { #expect(ThreadRights.giveUp()) }
        for name in ["closed", "later"] {
            spool.makeDirectory(name)
            chmod("\(spool.path)/\(name)", name == "closed" ? 0o700 : 0o777)
        }
        spool.write("1\n", to: "closed/x.jsonl")
        chmod("\(spool.path)/closed/x.jsonl", 0o644)
        let reader = try await spool.start { $0.pollInterval = .seconds(3600) }
        await spool.until("it is told") { reader.figures.complaints.contains { $0.path == "closed" } }
        // One that was open before.
        chmod("\(spool.path)/later", 0o700)
        spool.write("{\"n\":2}", to: "later/.y")
        chmod("\(spool.path)/later/.y", 0o666)
        spool.rename("later/.y", to: "later/y.json")
        await spool.until("that is told too") {
            reader.figures.complaints.contains { $0.path.hasPrefix("later") }
        }
        #expect(spool.queue.lines.isEmpty)
        #expect(spool.log.messages.count { $0.text == "cannot access" } == 2)
        chmod("\(spool.path)/closed", 0o755)
        chmod("\(spool.path)/later", 0o777)
        await spool.untilLines(["1", "{\"n\":2}"])
        await spool.until("nothing is left to mend") { reader.figures.inaccessible == 0 }
        await reader.stop()
    }

    @Test(
        "an unreadable directory delays only itself: rotated files and archives beside it are read",
        arguments: ["incoming", "shop"])
    func unreadableDirectoriesDelayNothing(top: String) async throws {
        let spool = try SpoolHarness()
        for path in [top, "\(top)/zz"] { spool.makeDirectory(path) }
        for path in ["", "/\(top)"] { chmod("\(spool.path)\(path)", 0o777) }
        chmod("\(spool.path)/\(top)/zz", 0o700)
        spool.loop.post { #expect(ThreadRights.giveUp()) }
        spool.write("rotated\n", to: "\(top)/x.jsonl.1")
        spool.write(try FrameCompressor(.gzip).compress(Array("packed\n".utf8)), to: "\(top)/x.jsonl.2.gz")
        spool.write("current\n", to: "\(top)/x.jsonl")
        for name in ["x.jsonl.1", "x.jsonl.2.gz", "x.jsonl"] { chmod("\(spool.path)/\(top)/\(name)", 0o666) }
        let reader = try await spool.start()
        await spool.untilLines(["rotated", "packed", "current"])
        await reader.stop()
    }

    @Test("another program's write lease does not stop the reader, and the file is read when the lease ends")
    func leasesDoNotBlock() async throws {
        let spool = try SpoolHarness()
        spool.write("leased\n", to: "a.jsonl")
        let held = open("\(spool.path)/a.jsonl", O_RDWR)
        signal(SIGIO, SIG_IGN)
        #expect(fcntl(held, 1024, F_WRLCK) == 0)
        spool.write("free\n", to: "b.jsonl")
        let reader = try await spool.start()
        await spool.untilLines(["free"])
        await spool.until("its lease is seen") { reader.figures.leaseWaits > 0 }
        close(held)
        await spool.untilLines(["free", "leased"])
        await reader.stop()
    }

    @Test("names of any bytes are handled, and shown as text")
    func namesOfAnyBytes() async throws {
        let spool = try SpoolHarness()
        let name: [UInt8] = [0xFF, 0x0A, 0x20, 0x5C, 0xC3] + Array(".jsonl".utf8)
        let path = (Array(spool.path.utf8) + [0x2F] + name + [0]).map { CChar(bitPattern: $0) }
        let file = open(path, O_WRONLY | O_CREAT, 0o660)
        write(file, "1\n", 2)
        close(file)
        let reader = try await spool.start()
        await spool.untilLines(["1"])
        #expect(spool.queue.with { $0.lines[0].path } == "\u{FFFD}\n \\\u{FFFD}.jsonl")
        await reader.stop()
        unlink(path)
    }

    @Test("in incoming/ the app is the file's owner, who may not be critical by default")
    func incomingFilesBelongToTheirOwner() async throws {
        let spool = try SpoolHarness()
        spool.makeDirectory("incoming")
        spool.write("{\"n\":1}", to: "incoming/.a")
        chown("\(spool.path)/incoming/.a", 65_534, 65_534)
        spool.rename("incoming/.a", to: "incoming/a.json")
        spool.write("{\"n\":2}", to: "top.json")
        let reader = try await spool.start()
        await spool.untilLines(["{\"n\":1}", "{\"n\":2}"])
        #expect(spool.queue.with { $0.wasMayBeCritical } == ["nobody": false, "default": true])
        await reader.stop()
    }
}
