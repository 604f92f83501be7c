internal import CCurl
internal import Glibc

/// The lines of a request's head as libcurl reads them during the request. Equal lines stay where they are.
struct RequestHeaders: ~Copyable {
    /// libcurl's list.
    private(set) var list: UnsafeMutablePointer<curl_slist>?
    /// The lines in the list; empty if the list lacks some for want of memory, so that it is not reused.
    private var lines: [String] = []

    deinit { curl_slist_free_all(list) }

    /// Sets the lines, in the existing list if possible; returns whether `list` is another one now.
    mutating func set(_ wanted: [String]) -> Bool {
        if replace(wanted) { return false }
        curl_slist_free_all(list)
        list = nil
        lines = wanted
        for line in wanted {
            if let longer = curl_slist_append(list, line) {
                list = longer
            } else {
                // Without memory the list lacks this line. The request is sent anyway; the server judges a
                // request without that header.
                lines = []
            }
        }
        return true
    }

    /// Replaces only the lines that differ: usually the batch's id alone changes between two requests.
    ///
    /// - Returns: false if the number of lines differs or there is no memory.
    private mutating func replace(_ wanted: [String]) -> Bool {
        guard !wanted.isEmpty, wanted.count == lines.count else { return false }
        var entry = list
        for (place, line) in wanted.enumerated() {
            guard let current = entry else { return false }
            if line != lines[place] {
                guard let copy = strdup(line) else { return false }
                free(current.pointee.data)
                current.pointee.data = copy
                lines[place] = line
            }
            entry = current.pointee.next
        }
        return true
    }
}

/// Copy of a request's body at an address that does not change while libcurl reads it.
struct RequestBody: ~Copyable {
    private var storage = UnsafeMutableRawBufferPointer(start: nil, count: 0)
    /// Size of the body; the storage may be larger.
    private(set) var count = 0

    deinit { storage.deallocate() }

    /// The first byte; nil before any body had one.
    var start: UnsafeMutableRawPointer? { storage.baseAddress }

    /// Copies a body, into the storage of the last one if that is large enough.
    mutating func set(_ bytes: borrowing [UInt8]) {
        // libcurl reads the body in place until the transfer ends, and an array may move its bytes.
        if storage.count < bytes.count {
            storage.deallocate()
            storage = .allocate(byteCount: bytes.count, alignment: 16)
        }
        bytes.withUnsafeBytes { storage.copyMemory(from: $0) }
        count = bytes.count
    }
}
