internal import EventLoops
internal import Logs
internal import Model

/// What all I/O types of a reader use, and none of them changes but the root.
final class SpoolContext {
    let options: SpoolOptions
    let log: Log
    let time: any TimeSource
    let loop: EventLoop
    let root: SpoolRoot

    init(
        _ options: SpoolOptions, _ log: Log, _ time: any TimeSource, on loop: EventLoop, _ root: SpoolRoot
    ) {
        self.options = options
        self.log = log
        self.time = time
        self.loop = loop
        self.root = root
    }

    /// A path in the spool as a person finds it.
    func wholePath(_ path: FileName) -> String {
        path.bytes.isEmpty ? options.directory : "\(options.directory)/\(path.text)"
    }
}
