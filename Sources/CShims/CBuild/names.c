#include <stdint.h>

/*
 * Stands for the Swift runtime's function of this name in the release build, which links with --wrap: the names of Unicode's
 * characters are 550 KB of tables, and only Unicode.Scalar.Properties.name, which nothing here asks for, reads them. Zero bytes
 * written mean that the character has no name: that property is nil then. Without --wrap nobody calls this.
 */
intptr_t __wrap__swift_stdlib_getScalarName(uint32_t scalar, uint8_t *name, intptr_t capacity);

intptr_t __wrap__swift_stdlib_getScalarName(uint32_t scalar, uint8_t *name, intptr_t capacity) {
    (void)scalar;
    (void)name;
    (void)capacity;
    return 0;
}
