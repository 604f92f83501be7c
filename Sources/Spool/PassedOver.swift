/// Files whose names are of no kind that is read: counted and named, because an app that writes `events.txt` waits in vain.
struct PassedOver {
    /// How many are remembered; of more only these are known.
    private static let most = 1024
    private static let mostNamed = 8

    private var paths: Set<FileName> = []

    var count: Int { paths.count }

    var names: [String] { paths.sorted().prefix(PassedOver.mostNamed).map(\.text) }

    mutating func add(_ path: FileName) {
        if paths.count < PassedOver.most { paths.insert(path) }
    }

    mutating func remove(_ path: FileName) { paths.remove(path) }

    mutating func removeAll(below path: FileName) {
        guard !paths.isEmpty else { return }
        let start = path.bytes + [UInt8(ascii: "/")]
        paths = paths.filter { !$0.bytes.starts(with: start) }
    }
}

extension SpoolReader {
    /// A file whose name is of no kind that is read. Hidden and unfinished ones are meant to be passed over.
    func passOver(_ directory: SpoolDirectory, _ name: FileName) {
        guard options.place == nil, !name.isHidden, !name.isUnfinished else { return }
        trouble.passedOver.add(directory.path(of: name))
    }

    func forgetPassedOver(_ directory: SpoolDirectory, _ name: FileName) {
        if trouble.passedOver.count > 0 { trouble.passedOver.remove(directory.path(of: name)) }
    }
}
