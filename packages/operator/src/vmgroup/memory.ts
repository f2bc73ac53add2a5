/** Users say GiB, vCenter MB, which are MiB. */
export const MB_IN_GIB = 1_024;
