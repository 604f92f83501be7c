import EventLoops
import Model
import TestKit
import Testing

@testable import Spool

/// Which directories are known and which are listed next, without a disk.
@Suite("Spool: tree")
struct TreeTests {
    private func directory(_ path: String) -> SpoolDirectory {
        let depth = path.isEmpty ? 0 : path.split(separator: "/").count
        return SpoolDirectory(
            path: FileName(path), depth: depth, id: FileID(bytes: Array(path.utf8.suffix(20))), 0)
    }

    @Test(
        "random trees: parents and children agree, and the figures of apps are the sums of their directories"
    )
    func randomTrees() {
        for seed in UInt64(1)...50 {
            var random = SplitMix64(seed: seed)
            let tree = Tree()
            tree.add(directory(""))
            let names = ["a", "b", "a/x", "a/y", "a/x/z", "b/x", "b/x/y"]
            for _ in 0..<200 {
                let name = names.randomElement(using: &random) ?? "a"
                if let known = tree[FileName(name)] {
                    remove(known, from: tree)
                } else if tree[FileName(name).parent] != nil {
                    tree.add(directory(name))
                }
                for known in tree.all where known.depth > 0 {
                    #expect(tree[known.path.parent]?.children[known.path] === known, "seed \(seed)")
                    #expect(!known.isGone)
                }
                for app in ["a", "b"] {
                    #expect(tree.count(of: app) == tree.all.count { $0.app == app }, "seed \(seed)")
                }
            }
            if let top = tree.top {
                remove(top, from: tree)
            }
            #expect(tree.count == 0 && tree.count(of: "a") == 0)
        }
    }

    private func remove(_ directory: SpoolDirectory, from tree: Tree) {
        for child in tree.remove(directory) { remove(child, from: tree) }
    }

    @Test("an app with too many directories is listed again once an eighth of them is free")
    func bound() {
        let tree = Tree()
        let all = (0..<16).map { directory("app/\($0)") }
        for directory in all {
            let mayAdd = tree.hasRoom(for: "app", most: 16)
            #expect(mayAdd)
            tree.add(directory)
        }
        let isRefused = !tree.hasRoom(for: "app", most: 16)
        #expect(isRefused)
        for directory in all.prefix(2) {
            _ = tree.remove(directory)
            let isEarly = tree.hasRoomAgain(for: "app", most: 16)
            #expect(!isEarly)
        }
        _ = tree.remove(all[2])
        let first = tree.hasRoomAgain(for: "app", most: 16)
        let second = tree.hasRoomAgain(for: "app", most: 16)
        #expect(first && !second)
    }

    @Test("one directory in the drop box is reported, until a listing does not find it")
    func nested() {
        let tree = Tree()
        let reported = tree.foundNested(FileName("incoming/a"))
        let other = tree.foundNested(FileName("incoming/b"))
        #expect(reported && !other)
        tree.beginDropBoxListing()
        let again = tree.foundNested(FileName("incoming/a"))
        let stays = tree.endDropBoxListing()
        #expect(again && stays == nil)
        tree.beginDropBoxListing()
        let gone = tree.endDropBoxListing()
        #expect(gone == FileName("incoming/a"))
    }

    @Test("a directory is queued once, and a change during its listing causes another one")
    func queue() {
        var listing = Listing()
        let (first, second) = (directory("a"), directory("b"))
        let isNew = listing.queue(first)
        let isNewAgain = listing.queue(first)
        #expect(isNew && !isNewAgain && first.isScanStale && listing.count == 1)
        _ = listing.queue(second)
        var next = listing.next(Shares(), most: 8) { $0 !== first }
        #expect(next?.directory === second)
        next = listing.next(Shares(), most: 8) { $0 !== first }
        #expect(next == nil && !listing.isDone)
        next = listing.next(Shares(), most: 8) { _ in true }
        #expect(next?.directory === first && listing.isIdle)
        let isFirst = listing.endFirst()
        let isFirstAgain = listing.endFirst()
        #expect(isFirst && !isFirstAgain && listing.isDone)
    }

    @Test(
        "a directory whose files wait for room is listed again when there is some, and forgotten when removed"
    )
    func crowd() {
        var listing = Listing()
        let holders = ["a", "b"].map { Holder(top: Array($0.utf8), owner: nil) }
        let (first, second) = (directory("a"), directory("b"))
        listing.crowd(holders[0], in: first)
        listing.crowd(holders[1], in: second)
        #expect(listing.crowdedCount == 2)
        let relisted = listing.takeCrowded { $0 == holders[0] }
        #expect(relisted.count == 1 && relisted.first === first)
        // Still reported until the listing has shown that all files have room.
        let resolved = listing.takeUncrowded()
        #expect(resolved == [holders[0]] && listing.crowdedCount == 1)
        listing.forget(second)
        #expect(listing.crowdedCount == 0)
    }
}
