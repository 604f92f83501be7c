internal import CGzip

/// The CRC-32 of gzip and PNG, by the processor's carry-less multiplication: some 20 GB/s.
///
/// It detects damage, not malice.
/// - Parameters:
///   - bytes: what is summed.
///   - initial: the sum of what came before; 0 at the beginning.
public func crc32(_ bytes: UnsafeRawBufferPointer, from initial: UInt32 = 0) -> UInt32 {
    guard let base = bytes.baseAddress else { return initial }
    return cgzip_crc32(initial, base, bytes.count)
}

/// The CRC-32 of iSCSI without its last inversion, twice as fast, of less than 2 GiB; `initial` is the sum of what came before.
public func crc32c(_ bytes: UnsafeRawBufferPointer, from initial: UInt32 = .max) -> UInt32 {
    guard let base = bytes.baseAddress else { return initial }
    return cgzip_crc32c(initial, base, bytes.count)
}
