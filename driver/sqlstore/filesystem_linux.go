package sqlstore

import "syscall"

// networkFileSystem returns the kind of a network file system, or an empty string.
func networkFileSystem(dir string) string {
	var stat syscall.Statfs_t
	if syscall.Statfs(dir, &stat) != nil {
		return ""
	}
	return map[uint32]string{ // statfs(2)
		0x6969: "nfs", 0x517b: "smb", 0xff534d42: "cifs", 0xfe534d42: "smb2", 0x01021997: "9p",
		0x00c36400: "ceph", 0x5346414f: "afs", 0x65735546: "fuse",
	}[uint32(stat.Type)]
}
