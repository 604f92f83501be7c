internal import EventLoops
internal import Glibc

/// Where a link leads.
struct LinkTarget: ~Copyable {
    /// The file, or the directory that the link leads to, opened for its metadata.
    let file: Descriptor
    /// The directory that the file is in, opened for its metadata, and the file's name there.
    let directory: Descriptor
    let name: FileName
    let isDirectory: Bool

    consuming func takeFile() -> Descriptor { file }
}

/// Links below the first wildcard, which are followed into the directories of `follow` only.
extension ReadPlace {
    /// Most links from a name to its file: kubelet makes two.
    private static let mostLinks = 8
    /// Most names in the path of a link, below a directory of `follow`.
    private static let mostNames = 64

    /// Opens the file that a link leads to, maybe through further links.
    ///
    /// - Parameter directory: the directory that the link is in.
    /// - Returns: nil if the link leads elsewhere, or to a directory.
    /// - Throws: ENOENT if it leads to nothing.
    func target(of link: borrowing Descriptor, in directory: Int32) throws(SystemError) -> LinkTarget? {
        guard let end = try end(of: link, in: directory), !end.isDirectory else { return nil }
        return end
    }

    /// Opens the directory at a path with links in it.
    ///
    /// - Throws: ELOOP if a link leads elsewhere, ENOTDIR if the path leads to a file, ENOENT if it leads to
    ///   nothing.
    func directory(at path: FileName, beneath root: Int32) throws(SystemError) -> Descriptor {
        var directory = try FileSystem.openDirectory(root, FileName(""))
        for name in path.bytes.split(separator: UInt8(ascii: "/")).map({ FileName($0) }) {
            let next = try FileSystem.openPath(directory.raw, name)
            guard try FileSystem.status(next).isLink else {
                directory = try FileSystem.openDirectory(directory.raw, name)
                continue
            }
            guard let end = try end(of: next, in: directory.raw) else {
                throw SystemError("openat2", number: ELOOP)
            }
            guard end.isDirectory else { throw SystemError("openat2", number: ENOTDIR) }
            directory = end.takeFile()
        }
        return directory
    }

    /// Opens what a link leads to, maybe through further links.
    ///
    /// The text of the link only chooses the directory. The rest of the path is opened beneath that directory
    /// and without links. So a user who turns a link, or a directory on the way, at any moment can lead the
    /// agent to another file of that directory, but not out of it.
    ///
    /// - Parameter directory: the directory that the link is in.
    /// - Returns: nil if the link leads elsewhere.
    /// - Throws: ENOENT if it leads to nothing; ELOOP if it leads through too many links or names, each of
    ///   which is opened by itself.
    private func end(of link: borrowing Descriptor, in directory: Int32) throws(SystemError) -> LinkTarget? {
        guard !follow.isEmpty, var text = RealPath.target(of: "", in: link.raw) else { return nil }
        var base = RealPath.target(of: FileSystem.selfPath(directory)) ?? ""
        for _ in 0..<ReadPlace.mostLinks {
            let path = ReadPlace.plain(text.hasPrefix("/") ? text : "\(base)/\(text)")
            guard let (opened, rest) = followed(path) else { return nil }
            // Any name on the way may be a link in turn, as Docker's directory is on some machines.
            var parent = try FileSystem.openDirectory(opened.descriptor.raw, FileName(""))
            var names = rest.bytes.split(separator: UInt8(ascii: "/")).map { FileName($0) }[...]
            guard names.count <= ReadPlace.mostNames else { throw SystemError("openat2", number: ELOOP) }
            while true {
                let name = names.popFirst() ?? FileName("")
                let file = try FileSystem.openPath(parent.raw, name)
                if let next = RealPath.target(of: "", in: file.raw) {
                    text = ([next] + names.map(\.text)).joined(separator: "/")
                    break
                }
                guard !names.isEmpty else {
                    let isDirectory = try FileSystem.status(file).isDirectory
                    return LinkTarget(file: file, directory: parent, name: name, isDirectory: isDirectory)
                }
                parent = try FileSystem.openDirectory(parent.raw, name)
            }
            base = RealPath.target(of: FileSystem.selfPath(parent.raw)) ?? ""
        }
        throw SystemError("openat2", number: ELOOP)
    }

    /// A directory that is open.
    private final class Opened {
        let descriptor: Descriptor
        init(_ descriptor: consuming Descriptor) { self.descriptor = descriptor }
    }

    /// The directory of `follow` that a path is in, and the rest of the path, which is empty for that
    /// directory itself; nil if the path is in none of them. A directory on a file system that may not answer
    /// is passed over.
    private func followed(_ path: String) -> (Opened, FileName)? {
        for directory in follow {
            guard let opened = try? Opened(ReadPlace.opened(directory)) else { continue }
            // A link may name the directory as it is configured, or as it is called without links.
            let real = RealPath.target(of: FileSystem.selfPath(opened.descriptor.raw)) ?? directory
            for name in [directory, real] {
                if path == name { return (opened, FileName("")) }
                if let rest = ReadPlace.part(of: path, below: name), !rest.isEmpty {
                    return (opened, FileName(rest))
                }
            }
        }
        return nil
    }

    /// A path without `.`, `..` and repeated slashes.
    private static func plain(_ path: String) -> String {
        var parts: [Substring] = []
        for part in path.split(separator: "/") where part != "." {
            if part == ".." {
                _ = parts.popLast()
            } else {
                parts.append(part)
            }
        }
        return "/" + parts.joined(separator: "/")
    }

    /// The patterns of all files that links of the place may lead to.
    var followedPatterns: [PathPattern] { follow.map { PathPattern(path: "\($0)/**") } }
}
