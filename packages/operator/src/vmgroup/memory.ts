/** Number of MB in vCenter per GiB in the spec. A MB in vCenter is a MiB. */
export const MB_IN_GIB = 1_024;
