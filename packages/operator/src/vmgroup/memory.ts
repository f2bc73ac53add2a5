/** The spec has GiB; vCenter's MB are MiB. */
export const MB_IN_GIB = 1_024;
