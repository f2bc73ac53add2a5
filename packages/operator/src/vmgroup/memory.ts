/** Number of vCenter's MB (which are MiB) per GiB of the spec. */
export const MB_IN_GIB = 1_024;
