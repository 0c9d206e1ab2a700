# The devices that the cases are about, at the addresses that the firmware gives them, and the
# drivers that the host has for them. host/machine.sh makes the machine; the first case checks that
# it is this one.
H100=0000:42:00.0
H100_AUDIO=0000:42:00.1
H100_RESOURCE=nvidia.com/GH100_H100_SXM5_80GB
H100_VARIABLE=PCI_RESOURCE_NVIDIA_COM_GH100_H100_SXM5_80GB
LONE_NIC=0000:01:00.0
CARD_NIC=0000:02:00.0
CARD_AUDIO=0000:02:00.1
OPEN_PORT0=0000:00:03.0
OPEN_PORT1=0000:00:03.1
OPEN_NIC0=0000:03:00.0
OPEN_NIC1=0000:04:00.0
BRIDGE=0000:09:00.0
CONVENTIONAL_NIC=0000:0a:01.0
CONVENTIONAL_EDU=0000:0a:02.0
PHYSICAL_FUNCTION=0000:0b:00.0
NODE1_NIC=0000:41:00.0

# address=driver for each device that a case may touch.
HOST_DRIVERS="$H100=none $H100_AUDIO=snd_hda_intel $LONE_NIC=e1000e $CARD_NIC=e1000e
  $CARD_AUDIO=snd_hda_intel $OPEN_NIC0=e1000e $OPEN_NIC1=e1000e $CONVENTIONAL_NIC=e1000
  $CONVENTIONAL_EDU=none $PHYSICAL_FUNCTION=nvme $NODE1_NIC=e1000e"
