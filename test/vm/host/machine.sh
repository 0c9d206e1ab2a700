# The virtual machine, as QEMU arguments. README.md lists the groups that the kernel makes of it;
# guest/machine.sh has the same devices by the addresses at which the guest sees them.
# Sourced by run.sh; sets the array `machine`.

# port ID ADDR NUMBER [PROPERTY...]: a root port in slot ADDR of the root complex.
port() {
  local id=$1 addr=$2 number=$3
  shift 3
  machine+=(-device "pcie-root-port,id=$id,bus=pcie.0,addr=$addr,chassis=$number,slot=$number$*")
}
device() { machine+=(-device "$1"); }

machine=(
  -machine q35 -accel tcg,thread=multi -cpu max -smp 2 -m 1024
  -nodefaults -no-user-config -display none -vga none -monitor none -no-reboot
  -object memory-backend-ram,id=ram0,size=512M -numa node,nodeid=0,memdev=ram0,cpus=0
  -object memory-backend-ram,id=ram1,size=512M -numa node,nodeid=1,memdev=ram1,cpus=1
  -device intel-iommu,intremap=on,caching-mode=on,aw-bits=48
)

# A NIC alone below a port with ACS: a group of one.
port lone 2.0 1 ,multifunction=on
device e1000e,bus=lone
# One card of two functions, without ACS between them: a group of two. The second plays sound, so
# that its driver has something that a process can keep open.
port card 2.1 2
device e1000e,bus=card,addr=0.0,multifunction=on
device intel-hda,bus=card,addr=0.1,id=sound
machine+=(-audiodev none,id=silence)
device hda-output,bus=sound.0,audiodev=silence
# Two ports of one slot without ACS, a NIC below each: one group of four.
port open0 3.0 3 ,multifunction=on,disable-acs=on
port open1 3.1 4 ,disable-acs=on
device e1000e,bus=open0
device e1000e,bus=open1
# A switch whose downstream ports have no ACS: each shares a group with the NIC below it.
port above-switch 4.0 5
device x3130-upstream,bus=above-switch,id=switch
device xio3130-downstream,bus=switch,id=down0,addr=0.0,chassis=50,slot=50
device xio3130-downstream,bus=switch,id=down1,addr=1.0,chassis=51,slot=51
device e1000e,bus=down0
device e1000e,bus=down1
# A conventional bus: one group with its bridge.
port above-bridge 5.0 6
device pcie-pci-bridge,bus=above-bridge,id=conventional
device e1000,bus=conventional,addr=1.0
device edu,bus=conventional,addr=2.0
# A physical function with up to four virtual ones, and a disk (boot() brings its file).
port sriov 6.0 7
device nvme-subsys,id=subsystem
device nvme,id=nvme,bus=sriov,serial=vm,subsys=subsystem,sriov_max_vfs=4,sriov_vq_flexible=8,sriov_vi_flexible=4,max_ioqpairs=10,msix_qsize=6
device nvme-ns,bus=nvme,drive=disk
# Display controllers that are nobody's to give away; the last is the one the machine boots with.
port display0 8.0 9
port display1 9.0 10
port display2 a.0 11
device bochs-display,bus=display0
device virtio-gpu-pci,bus=display1
device ati-vga,bus=display2,model=rv100
# Parents of mediated devices, below ports with ACS; their driver is in module/.
port parent0 c.0 21
port parent1 d.0 22
device fake-t4,bus=parent0
device fake-t4,bus=parent1
# NUMA node 1, with a root complex of its own: a NIC, and the H100 with its audio function.
device pxb-pcie,id=node1,bus=pcie.0,addr=b.0,bus_nr=0x40,numa_node=1
machine+=(-device pcie-root-port,id=node1-nic,bus=node1,chassis=40,slot=40
  -device pcie-root-port,id=node1-gpu,bus=node1,chassis=41,slot=41)
device e1000e,bus=node1-nic
device fake-h100,bus=node1-gpu,addr=0.0,multifunction=on,subsys_ven=0x10de,subsys=0x1839
device fake-h100-audio,bus=node1-gpu,addr=0.1
