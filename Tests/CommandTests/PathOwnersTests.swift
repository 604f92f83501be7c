import EventLoops
import Foundation
import TestKit
import Testing

@testable import spoolship

/// What root opens by a path that users can change.
@Suite("Paths of users, read by root", .enabled(if: geteuid() == 0))
struct PathOwnersTests {
    /// No service of the system knows these.
    private static let users: [uid_t] = [0, 65_001, 65_002]

    private let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
        try #require(chmod(directory.path, 0o755) == 0)
    }

    private func make(_ path: String, _ owner: uid_t, _ group: gid_t, _ mode: mode_t) throws {
        try writeFile(path, "secret of \(owner)")
        try #require(lchown(path, owner, group) == 0 && chmod(path, mode) == 0)
    }

    private func makeDirectory(_ path: String, _ owner: uid_t, _ group: gid_t = 0) throws {
        try #require(mkdir(path, 0o755) == 0 && lchown(path, owner, group) == 0 && chmod(path, 0o755) == 0)
    }

    private func link(_ path: String, to target: String, _ owner: uid_t) throws {
        try #require(symlink(target, path) == 0 && lchown(path, owner, owner) == 0)
    }

    @Test("a file of root with another group stays closed, although the user's directory has this group")
    func groupOfTheDirectory() throws {
        let root = directory.path
        try make("\(root)/auth.log", 0, 4, 0o640)
        try makeDirectory("\(root)/home", 65_001, 4)
        try link("\(root)/home/a.log", to: "\(root)/auth.log", 65_001)
        let owners = try PathOwners(of: "\(root)/home/a.log")
        #expect(owners.users == [65_001])
        #expect(throws: SystemError.self) { _ = try owners.open() }
    }

    @Test("root's own link into a user's directory is read with the user's rights")
    func rootsLink() throws {
        let root = directory.path
        try make("\(root)/secret", 0, 0, 0o600)
        try makeDirectory("\(root)/home", 65_001)
        try link("\(root)/home/log", to: "\(root)/secret", 65_001)
        try link("\(root)/short", to: "home", 0)
        #expect(try PathOwners(of: "\(root)/short/log").users == [65_001])
        #expect(throws: SystemError.self) { _ = try PathOwners(of: "\(root)/short/log").open() }
    }

    @Test("if a path leads through directories of two users, both must be allowed to read the file")
    func twoUsers() throws {
        let root = directory.path
        try makeDirectory("\(root)/ann", 65_001)
        try makeDirectory("\(root)/bob", 65_002)
        try make("\(root)/bob/mail", 65_002, 65_002, 0o600)
        try make("\(root)/bob/news", 65_002, 65_002, 0o644)
        try link("\(root)/ann/mail", to: "\(root)/bob/mail", 65_001)
        try link("\(root)/ann/news", to: "../bob/news", 65_001)
        let owners = try PathOwners(of: "\(root)/ann/mail")
        #expect(owners.users == [65_001, 65_002] && owners.names == "65001 and 65002")
        #expect(throws: SystemError.self) { _ = try owners.open() }
        let news = try PathOwners(of: "\(root)/ann/news").open()
        #expect(
            try WholeFile.bytes(of: news.raw, atMost: 100).map { String(decoding: $0, as: UTF8.self) }
                == "secret of 65002")
    }

    @Test("circular and dangling links are errors, and afterwards root has its rights back")
    func errors() throws {
        let root = directory.path
        try link("\(root)/a", to: "b", 65_001)
        try link("\(root)/b", to: "a", 65_001)
        try link("\(root)/c", to: "nothing", 65_001)
        #expect(throws: SystemError.self) { _ = try PathOwners(of: "\(root)/a") }
        #expect(throws: SystemError.self) { _ = try PathOwners(of: "\(root)/c") }
        try make("\(root)/closed", 65_001, 0, 0)
        #expect(throws: SystemError.self) { _ = try PathOwners(of: "\(root)/closed").open() }
        #expect(geteuid() == 0 && getegid() == 0)
    }

    @Test("random trees: root opens exactly what each user on the way could open")
    func randomTrees() throws {
        let seed = Seeds.one(10)
        print("paths of users: seed \(seed)")
        var random = SplitMix64(seed: seed)
        let root = directory.path
        for world in 0..<20 {
            let base = "\(root)/\(world)"
            try makeDirectory(base, 0)
            var directories = [base]
            for number in 0..<4 {
                let path = "\(any(directories, &random))/d\(number)"
                try makeDirectory(path, owner(&random))
                directories.append(path)
            }
            var names: [String] = []
            for number in 0..<4 {
                let path = "\(any(directories, &random))/f\(number)"
                let user = owner(&random)
                try make(path, user, user, [0o600, 0o640, 0o644].randomElement(using: &random) ?? 0o600)
                names.append(path)
            }
            for number in 0..<4 {
                let path = "\(any(directories, &random))/l\(number)"
                let targets = names + directories
                try link(
                    path, to: any(targets, &random),
                    owner(&random))
                names.append(path)
            }
            for name in names { try judge(name) }
        }
    }

    private func owner(_ random: inout SplitMix64) -> uid_t {
        PathOwnersTests.users[Int.random(in: 0..<3, using: &random)]
    }

    private func any(_ names: [String], _ random: inout SplitMix64) -> String {
        names[Int.random(in: 0..<names.count, using: &random)]
    }

    private func judge(_ path: String) throws {
        guard let owners = try? PathOwners(of: path), !owners.users.isEmpty,
            FileStatus(path)?.isRegular == true
        else { return }
        var isAllowed = true
        for user in owners.users {
            let asked = Process()
            asked.executableURL = URL(fileURLWithPath: "/usr/bin/setpriv")
            asked.arguments = [
                "--reuid", "\(user)", "--regid", "65534", "--clear-groups", "test", "-r", path,
            ]
            try asked.run()
            asked.waitUntilExit()
            isAllowed = isAllowed && asked.terminationStatus == 0
        }
        var isOpen = true
        do { _ = try owners.open() } catch { isOpen = false }
        #expect(isOpen == isAllowed, "\(path) by \(owners.users)")
    }
}
