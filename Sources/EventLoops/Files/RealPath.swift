internal import Glibc

/// Paths without symbolic links, so that they can be compared.
public enum RealPath {
    /// Most links to follow, as in the kernel (path_resolution(7)).
    public static let mostLinks = 40

    /// Where a path leads through links. A last component that does not exist stays as it is, so that
    /// the path of a file to be created can be compared too.
    ///
    /// - Parameter links: how many dangling links are followed, so that a cycle ends.
    public static func of(_ path: String, links: Int = mostLinks) -> String {
        if let resolved = ofExisting(path) { return resolved }
        guard let slash = path.lastIndex(of: "/"), slash != path.startIndex else { return path }
        let directory = of(String(path[..<slash]), links: links)
        let whole = directory + path[slash...]
        guard let target = target(of: whole), links > 0 else { return whole }
        return of(target.hasPrefix("/") ? target : "\(directory)/\(target)", links: links - 1)
    }

    /// Where a path leads; nil if it leads nowhere, and `errno` says why.
    public static func ofExisting(_ path: String) -> String? {
        guard let resolved = realpath(path, nil) else { return nil }
        defer { free(resolved) }
        return String(cString: resolved)
    }

    /// The target of a link; nil if the name is not a link, and `errno` says why. With an empty name,
    /// the target of the link that `directory` was opened on (O_PATH, readlink(2)).
    package static func target(of name: String, in directory: Int32 = -1) -> String? {
        var target = [CChar](repeating: 0, count: Int(PATH_MAX))
        let length = readlinkat(directory, name, &target, target.count)
        guard length >= 0 else { return nil }
        return String(decoding: target[..<length].map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }
}
