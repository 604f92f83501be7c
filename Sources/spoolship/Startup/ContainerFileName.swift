/// How a container's default file must be called (tm02).
enum ContainerFileName {
    /// What is wrong with a name; nil when it is right.
    ///
    /// Right are the id (a complete container), and the id with `.plist` or `.json` (values only). A version behind the
    /// id, as an export may carry, is refused with the right name.
    static func mistake(_ name: String, id: String) -> String? {
        let right = [id, "\(id).plist", "\(id).json"]
        if right.contains(name) { return nil }
        let ending = ["plist", "json"].first { name.hasSuffix(".\($0)") }
        let base = ending.map { name.dropLast($0.count + 1) } ?? Substring(name)
        if base.hasPrefix(id), isVersion(base.dropFirst(id.count)) {
            return "carries a version; call it \(id)\(ending.map { ".\($0)" } ?? "")"
        }
        if name.lowercased() == right.first(where: { $0.lowercased() == name.lowercased() })?.lowercased() {
            return "is spelled in other letters; call it \(id)\(ending.map { ".\($0)" } ?? "")"
        }
        return "is not the container's; call it \(id) (complete), \(id).plist or \(id).json (values only)"
    }

    /// `_v5`, `-12`, `.v3`, `_12.json` without its ending.
    private static func isVersion(_ text: Substring) -> Bool {
        guard let first = text.first, "_-. ".contains(first) else { return false }
        let rest = text.dropFirst()
        let digits = rest.first == "v" || rest.first == "V" ? rest.dropFirst() : rest
        return !digits.isEmpty && digits.allSatisfy { $0.isNumber || $0 == "." }
    }
}
