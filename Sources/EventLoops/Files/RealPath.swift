internal import Glibc

/// Paths without links, to be compared.
public enum RealPath {
    /// Where a path leads, through links; the name of a file that is not there yet stays as it is.
    ///
    /// - Parameter links: how many links to nothing are followed: as many as the kernel follows.
    public static func of(_ path: String, links: Int = 40) -> String {
        if let resolved = realpath(path, nil) {
            defer { free(resolved) }
            return String(cString: resolved)
        }
        guard let slash = path.lastIndex(of: "/"), slash != path.startIndex else { return path }
        let directory = of(String(path[..<slash]), links: links)
        let whole = directory + path[slash...]
        var target = [CChar](repeating: 0, count: 4096)
        let length = readlink(whole, &target, target.count)
        guard length > 0, links > 0 else { return whole }
        let name = String(decoding: target[..<length].map { UInt8(bitPattern: $0) }, as: UTF8.self)
        return of(name.hasPrefix("/") ? name : "\(directory)/\(name)", links: links - 1)
    }
}
