# shellcheck shell=sh
# What a machine has beside processors and memory. `sys` and `dev` are where the kernel shows it;
# all of it is read without a fork. What devices say of themselves is text from outside, too.
# shellcheck disable=SC2154 # what the other parts read
sys=/sys dev=/dev
h_count=0
has() { # KEY FILE: the line gets what FILE says, when it says something
	first "$2" || return 0
	word "$v"
	line="$line $1=$e"
}
found() { # the line is whole; a machine that has more than so many has enough
	h_count=$((h_count + 1))
	[ "$h_count" -gt 128 ] || answer "$line"
}
devices() {
	set +f
	for h_d in "$sys"/class/video4linux/video*; do
		# a camera has several nodes, and only its first one gives pictures
		if first "$h_d/index" && [ "$v" = 0 ]; then
			line="device video path=$dev/${h_d##*/}"
			has name "$h_d/name"
			found
		fi
	done
	for h_d in "$sys"/class/tty/ttyS* "$sys"/class/tty/ttyUSB* "$sys"/class/tty/ttyACM* \
		"$sys"/class/tty/ttyAMA*; do
		[ -e "$h_d/device" ] || continue
		# the kernel shows ports that are not there, as of type 0
		if first "$h_d/type" && [ "$v" = 0 ]; then continue; fi
		line="device serial path=$dev/${h_d##*/}"
		# an adapter has its ids one or two levels up, which the link is followed to
		for h_u in "$h_d/device/.." "$h_d/device/../.."; do
			if [ -e "$h_u/idVendor" ]; then
				usb_ids "$h_u"
				break
			fi
		done
		found
	done
	for h_d in "$sys"/bus/usb/devices/*; do
		[ -e "$h_d/idVendor" ] || continue
		if first "$h_d/bDeviceClass" && [ "$v" = 09 ]; then continue; fi # a hub
		line="device usb path=/sys/bus/usb/devices/${h_d##*/}"
		usb_ids "$h_d"
		found
	done
	set -f
	for h_d in kvm net/tun fuse; do
		[ ! -e "$dev/$h_d" ] || answer "device ${h_d##*/} path=$dev/$h_d"
	done
}
usb_ids() { # DIR
	has vendor "$1/idVendor"
	has product "$1/idProduct"
	has name "$1/product"
	has serial "$1/serial"
}
accelerators() {
	set +f
	for h_d in "$sys"/class/drm/renderD*; do
		[ -e "$h_d/device/vendor" ] || continue
		line="accel dri path=$dev/dri/${h_d##*/}"
		has vendor "$h_d/device/vendor"
		has product "$h_d/device/device"
		has name "$h_d/device/product_name"
		has uuid "$h_d/device/unique_id"
		has vram_total "$h_d/device/mem_info_vram_total"
		has vram_used "$h_d/device/mem_info_vram_used"
		[ ! -e "$dev/kfd" ] || line="$line kfd=yes"
		found
	done
	for h_d in "$sys"/class/accel/accel*; do
		[ -e "$h_d/device" ] || continue
		line="accel npu path=$dev/accel/${h_d##*/}"
		has vendor "$h_d/device/vendor"
		has product "$h_d/device/device"
		found
	done
	for h_d in "$dev"/apex_[0-9]* "$dev"/hailo[0-9]*; do
		[ -e "$h_d" ] || continue
		case $h_d in */apex_*) line='accel edgetpu' ;; *) line='accel hailo' ;; esac
		line="$line path=$h_d"
		found
	done
	set -f
	if [ -e "$dev/nvidiactl" ] || [ -e "$dev/nvhost-gpu" ]; then nvidia; fi
}
nvidia() { # only its own program knows; a card that has fallen off the bus can hang that for good
	where nvidia-smi
	asking || return 0
	ask nvidia "$w" --format=csv,noheader,nounits \
		--query-gpu=index,uuid,name,memory.total,memory.free,driver_version,compute_cap
	hear
	h_said=no
	if [ -e "$asked_in/nvidia.end" ]; then
		h_rows=0
		{
			while [ "$h_rows" -lt 32 ] && IFS= read -r h_row; do
				h_rows=$((h_rows + 1))
				case $h_row in
				[0-9]*,*,*,*,*)
					word "$h_row"
					answer accel nvidia "row=$e"
					h_said=yes
					;;
				esac
			done <"$asked_in/nvidia"
		} 2>/dev/null
	fi
	[ "$h_said" = yes ] || answer accel nvidia silent=yes
	forget
}
